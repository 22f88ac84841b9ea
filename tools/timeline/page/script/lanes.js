// Rows of streams and threads below the memory picture, on the same time axis.

const laneKind = {stream: 0, device: 1, idle: 2, waits: 3, submits: 4, calls: 5, overhead: 6};
const laneHeight = 32;
const barHeight = 15;
const batchesHeight = 64;

class LanesChart {
  constructor(canvas, view) {
    Object.assign(this, {canvas, view, places: [], height: 0});
  }

  show(process) {
    this.process = process;
    this.places = [];
    let top = 4;
    const add = (lane, height) => {
      this.places.push({lane, top, height});
      top += height;
    };
    const batches = process.batches[process.batches.length - 1].columns;
    for (const lane of process.lanes) if (lane.kind <= laneKind.waits) add(lane, laneHeight);
    if (batches[0].length) add(null, batchesHeight);
    for (const lane of process.lanes) if (lane.kind > laneKind.waits) add(lane, laneHeight);
    this.height = top + 6;
    this.canvas.style.height = `${this.height}px`;
    this.mostBatches = batches[1].reduce((a, b) => Math.max(a, b), 1);
    this.describe();
    this.draw();
  }

  draw() {
    const ratio = window.devicePixelRatio || 1;
    const width = this.canvas.clientWidth;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    const context = this.canvas.getContext('2d');
    context.scale(ratio, ratio);
    context.font = '11.5px system-ui, sans-serif';
    const area = this.view.area();
    for (const place of this.places) {
      context.fillStyle = styleColour('quiet');
      context.fillText(this.titleOf(place.lane), area.x, place.top + 11, area.w);
      context.save();
      context.beginPath();
      context.rect(area.x, place.top, area.w, place.height);
      context.clip();
      if (place.lane) this.drawRuns(context, area, place);
      else this.drawBatches(context, area, place);
      context.restore();
    }
  }

  titleOf(lane) {
    if (!lane) return `batches in flight (at most ${this.mostBatches}), with those that are open`;
    return lane.name;
  }

  drawRuns(context, area, place) {
    const {range} = this.view;
    const y = place.top + 14;
    context.fillStyle = styleColour('faint');
    context.fillRect(area.x, y, area.w, barHeight);
    const {columns: [begin, length, busy, count, name, , category]} = levelFor(place.lane.levels, range, area.w);
    const scale = area.w / (range[1] - range[0]);
    for (let i = 0; i < begin.length; i++) {
      if (begin[i] > range[1]) break;
      if (begin[i] + length[i] < range[0]) continue;
      const left = Math.max(area.x - 2, area.x + (begin[i] - range[0]) * scale);
      const right = Math.min(area.x + area.w + 2, area.x + (begin[i] + length[i] - range[0]) * scale);
      // A gap narrower than a pixel makes the pixel paler.
      context.globalAlpha = Math.max(0.15, Math.min(1, length[i] ? busy[i] / length[i] : 1));
      fillBox(context, left, y, Math.max(0.8, right - left), barHeight, colourOf(category[i]), categories[category[i]]?.hatched);
      context.globalAlpha = 1;
      if (right - left > 60 && count[i] === 1) this.writeName(context, name[i], left, right, y, category[i]);
    }
  }

  writeName(context, name, left, right, y, category) {
    const text = this.process.texts[name] || '';
    context.save();
    context.beginPath();
    context.rect(left + 3, y, right - left - 6, barHeight);
    context.clip();
    const pale = ['#e69f00', '#f0e442', '#56b4e9', '#cc79a7', '#9aa4af'].includes(colourOf(category));
    context.fillStyle = categories[category]?.hatched ? styleColour('text') : pale ? '#1b1f24' : '#ffffff';
    if (colourOf(category) === styleColour('strong')) context.fillStyle = styleColour('ground');
    context.fillText(text.slice(0, 120), left + 4, y + 11.5);
    context.restore();
  }

  drawBatches(context, area, place) {
    const {range} = this.view;
    const {columns: [times, both, , , flying]} = levelFor(this.process.batches, range, area.w);
    const bottom = place.top + place.height - 5;
    const room = place.height - 22;
    const scale = area.w / (range[1] - range[0]);
    const draw = (values, colour) => {
      context.fillStyle = colour;
      for (let i = Math.max(0, lastNotAbove(times, range[0])); i < times.length && times[i] <= range[1]; i++) {
        const left = area.x + (times[i] - range[0]) * scale;
        const next = i + 1 < times.length ? times[i + 1] : this.process.duration;
        const high = (values[i] / this.mostBatches) * room;
        context.fillRect(left, bottom - high, Math.max(0.6, (next - times[i]) * scale), high);
      }
    };
    draw(both, '#56b4e9');
    draw(flying, '#009e73');
    context.fillStyle = styleColour('line');
    context.fillRect(area.x, bottom, area.w, 1);
  }

  /** Describes what is drawn at a point of the canvas in a line; null if nothing is. */
  runAt(time, y) {
    const place = this.places.find((one) => y >= one.top && y < one.top + one.height);
    if (!place) return null;
    if (!place.lane) return this.batchesAt(time);
    return this.inLane(place.lane, time);
  }

  batchesAt(time) {
    const columns = levelFor(this.process.batches, this.view.range, this.view.area().w).columns;
    const row = lastNotAbove(columns[0], time);
    if (row < 0) return 'no batch yet';
    return `${columns[4][row]} batches in flight, ${columns[3][row]} open; the youngest is batch ${columns[5][row]}`;
  }

  inLane(lane, time) {
    const {range} = this.view;
    const {columns: [begin, length, busy, count, name, batch, category, bytes]} = levelFor(lane.levels, range, this.view.area().w);
    const near = (range[1] - range[0]) / this.view.area().w;
    for (let i = lastNotAbove(begin, time + near), steps = 0; i >= 0 && steps < 64; i--, steps++) {
      if (begin[i] + length[i] + near < time) continue;
      const word = categories[category[i]]?.word || '';
      const text = this.process.texts[name[i]];
      const what = text && !text.startsWith(word) ? `${word}: ${text}` : word;
      return `${lane.name}: ${what}` +
        (count[i] > 1 ? ` and ${count[i] - 1} more, busy ${formatTime(busy[i])} of ${formatTime(length[i])}` : `, ${formatTime(length[i])}`) +
        (batch[i] ? `, batch ${batch[i]}` : '') + (bytes[i] ? `, ${formatBytes(bytes[i])}` : '');
    }
    return `${lane.name}: nothing`;
  }

  describe() {
    const seen = new Set();
    for (const lane of this.process.lanes) for (const category of lane.levels[0].columns[6]) seen.add(category);
    const legend = document.getElementById('lane-legend');
    legend.replaceChildren(...[...seen].sort((a, b) => a - b).map((category) => legendEntry(
      categories[category]?.word || '?', categories[category]?.colour === 'strong' ? 'var(--strong)' : colourOf(category),
      categories[category]?.hatched ? 'hatched' : '')));
    if (this.places.some((place) => !place.lane)) {
      legend.append(legendEntry('batches in flight', '#009e73'), legendEntry('batches open', '#56b4e9'));
    }
    if (this.process.lanes_left_out) legend.append(element('li', `${this.process.lanes_left_out} lanes that do less are not shown`));
    this.canvas.setAttribute('aria-label', `Lanes: ${this.process.lanes.map(
      (lane) => `${lane.name} ${formatShare(lane.busy / this.process.duration)}`).join('; ')}`);
  }
}
