"""Reads the libsvm files that `weir-train wide --make` writes: a line `ROWS COLUMNS CLASSES`, then a line
`LABEL,LABEL INDEX:VALUE INDEX:VALUE` for each row, all numbers from 0."""

import dataclasses


@dataclasses.dataclass
class Rows:
    """Rows as CSR: entries and labels of row i from start i to the next."""

    starts: list
    indices: list
    values: list
    label_starts: list
    labels: list

    def batches(self, size):
        """Returns the rows in whole batches; rows that do not fill one are left out."""
        return [self.part(at, at + size) for at in range(0, len(self.starts) - size, size)]

    def part(self, begin, end):
        def of(starts, *lists):
            first, last = starts[begin], starts[end]
            return [[at - first for at in starts[begin : end + 1]], *(each[first:last] for each in lists)]

        return Rows(*of(self.starts, self.indices, self.values), *of(self.label_starts, self.labels))


def read_libsvm(path):
    """Raises ValueError for a file of another kind."""
    rows = Rows([0], [], [], [0], [])
    with open(path, encoding="ascii") as lines:
        count = int(next(lines).split()[0])
        for line in lines:
            labels, *entries = line.split()
            rows.labels.extend(int(label) for label in labels.split(","))
            for entry in entries:
                index, value = entry.split(":")
                rows.indices.append(int(index))
                rows.values.append(float(value))
            rows.starts.append(len(rows.indices))
            rows.label_starts.append(len(rows.labels))
    if len(rows.starts) != count + 1:
        raise ValueError(f"{path}: {count} rows announced, {len(rows.starts) - 1} found")
    return rows
