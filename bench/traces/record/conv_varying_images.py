"""Trains ResNet-50 on images of varying sizes, as multi-scale training does."""

import torch
from torch import nn
from torch.nn import functional as F


def normed(inside, outside, size, stride=1):
    convolution = nn.Conv2d(inside, outside, size, stride, padding=size // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outside))


class Bottleneck(nn.Module):
    def __init__(self, inside, width, stride):
        super().__init__()
        outside = 4 * width
        self.first = normed(inside, width, 1)
        self.second = normed(width, width, 3, stride)
        self.third = normed(width, outside, 1)
        self.skip = normed(inside, outside, 1, stride) if inside != outside else nn.Identity()

    def forward(self, x):
        y = F.relu(self.first(x), inplace=True)
        y = F.relu(self.second(y), inplace=True)
        y = self.third(y)
        y += self.skip(x)
        return F.relu(y, inplace=True)


def resnet_50(classes=1000):
    layers = [normed(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, padding=1)]
    inside = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for number in range(blocks):
            layers.append(Bottleneck(inside, width, stride if number == 0 else 1))
            inside = 4 * width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, classes)]
    return nn.Sequential(*layers)


def run(device, steps, step):
    draw = torch.Generator().manual_seed(2)
    model = resnet_50().to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    batch = 24
    for _ in range(steps):
        side = 160 + 16 * int(torch.randint(9, (), generator=draw))
        step(f"{batch}x3x{side}x{side}")
        images = torch.rand(batch, 3, side, side, generator=draw).to(device)
        images = images.contiguous(memory_format=torch.channels_last)
        labels = torch.randint(1000, (batch,), generator=draw).to(device)
        loss = F.cross_entropy(model(images), labels, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model, optimizer
