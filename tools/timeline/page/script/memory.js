// The memory picture: stacked, with the budget, reserved bytes, stalls and out-of-memory.

// Columns of a pool's series; see MemoryColumn in tools/timeline/page/memory.hpp.
const memoryColumn = {time: 0, held: 1, reserved: 2, requested: 3, allocated: 4, awaiting: 5, batch: 6, stack: 7};

/** Returns the first column of a keying's series in a pool's level, and their names. */
function stackOf(process, pool, keying) {
  const nothing = [['no label', 'no batch', 'no call site'][keying]];
  let first = memoryColumn.stack;
  for (let k = 0; k < keying; k++) first += pool.keys[k].length + 1;
  const names = pool.keys[keying].map((key) => process.texts[key] || nothing[0]);
  // By name, so that a label has the same colour in the pages of several runs of one job.
  const sorted = [...names].sort();
  return {first, names, colours: names.map((name) => palette[sorted.indexOf(name) % palette.length])};
}

/** Returns the layers of a picture from the top down, the order of dygraphs: {name, colour, value(level columns, row)}. */
function layersOf(process, pool, keying) {
  const stack = stackOf(process, pool, keying);
  const layers = stack.names.map((name, i) => ({
    name,
    colour: stack.colours[i],
    value: (columns, row) => columns[stack.first + i][row],
  }));
  layers.push({
    name: 'others',
    colour: '#9aa4af',
    value: (columns, row) => {
      // Includes held memory that no record describes.
      let known = 0;
      for (let i = 0; i < stack.names.length; i++) known += columns[stack.first + i][row];
      return Math.max(columns[stack.first + stack.names.length][row], columns[memoryColumn.held][row] - known, 0);
    },
  });
  const seen = layers.filter((layer, i) => i < stack.names.length || pool.levels.some(
    ({columns}) => columns[0].some((_, row) => layer.value(columns, row) > 0)));
  return seen.reverse();
}

/** Returns the rows of a level for dygraphs: time in seconds and one value for each layer. */
function memoryRows(pool, layers, range, pixels) {
  const {columns} = levelFor(pool.levels, range, pixels);
  const times = columns[0];
  const from = Math.max(0, lastNotAbove(times, range[0]));
  const to = Math.min(times.length - 1, lastNotAbove(times, range[1]) + 1);
  const rows = [];
  for (let i = from; i <= to; i++) rows.push([times[i] / 1e9, ...layers.map((layer) => layer.value(columns, i))]);
  return extend(rows, range);
}

/** Repeats the outermost values at the edges of the range: a value holds until the next one. */
function extend(rows, range) {
  if (rows.length === 0) return rows;
  const last = rows[rows.length - 1];
  if (last[0] < range[1] / 1e9) rows.push([range[1] / 1e9, ...last.slice(1)]);
  if (rows.length === 1) rows.unshift([rows[0][0] - 1e-9, ...rows[0].slice(1)]);
  return rows;
}

function budgetAt(pool, time) {
  let budget = 0;
  for (const [begin, bytes] of pool.budget) if (begin <= time || budget === 0) budget = bytes;
  return budget;
}

/** Makes ticks of bytes at powers of two. */
function bytesTicker(low, high, pixels) {
  const wanted = Math.max(2, Math.floor(pixels / 30));
  let step = 1;
  while ((high - low) / step > wanted) step *= 2;
  const ticks = [];
  for (let v = Math.ceil(low / step) * step; v <= high; v += step) ticks.push({v, label: v === 0 ? '0' : formatBytes(v)});
  return ticks;
}

class MemoryChart {
  constructor(place, view) {
    this.place = place;
    this.view = view;
  }

  show(process, pool, keying) {
    if (this.graph) this.graph.destroy();
    Object.assign(this, {process, pool, layers: layersOf(process, pool, keying)});
    const reserved = Math.max(0, ...pool.levels.map((level) => level.columns[2].reduce((a, b) => Math.max(a, b), 0)));
    // Show a budget unless it would make the reserved bytes too small to see.
    const budgets = pool.budget.map((one) => one[1]).filter((one) => one < 10 * reserved);
    this.top = 1.06 * Math.max(1, pool.peak, reserved, ...budgets);
    this.graph = new Dygraph(this.place, this.rows(), {
      labels: ['time', ...this.layers.map((_, i) => `${i}`)],
      colors: this.layers.map((layer) => layer.colour),
      stackedGraph: true, stepPlot: true, fillAlpha: 0.8, strokeWidth: 0.6, highlightCircleSize: 0,
      animatedZooms: false, legend: 'never', rightGap: 8, valueRange: [0, this.top], axisLabelFontSize: 12,
      dateWindow: this.view.range.map((t) => t / 1e9), gridLineColor: styleColour('faint'),
      axisLineColor: styleColour('line'),
      axes: {
        x: {axisLabelFormatter: (v) => formatMoment(v * 1e9, this.view.range[1] - this.view.range[0])},
        y: {ticker: bytesTicker, axisLabelWidth: 62, drawGrid: true},
      },
      drawCallback: (graph, first) => first || this.view.moved(graph.xAxisRange().map((t) => t * 1e9)),
      clickCallback: (event, x) => this.view.pick(x * 1e9),
      plugins: [{activate: () => ({didDrawChart: (e) => this.drawOver(e.dygraph, e.drawingContext)})}],
    });
    this.describe();
  }

  rows() {
    const rows = memoryRows(this.pool, this.layers, this.view.range, Math.max(200, this.place.clientWidth));
    return rows.length ? rows : [[0, ...this.layers.map(() => 0)], [1, ...this.layers.map(() => 0)]];
  }

  update() {
    this.graph.updateOptions({
      file: this.rows(), dateWindow: this.view.range.map((t) => t / 1e9),
      gridLineColor: styleColour('faint'), axisLineColor: styleColour('line'),
    });
  }

  drawOver(graph, context) {
    const area = graph.getArea();
    const x = (t) => Math.max(area.x, Math.min(area.x + area.w, graph.toDomXCoord(t / 1e9)));
    const y = (bytes) => graph.toDomYCoord(bytes);
    context.save();
    context.beginPath();
    context.rect(area.x, area.y, area.w, area.h);
    context.clip();
    this.shadeStalls(context, area, x);
    this.drawReserved(context, x, y);
    this.drawBudget(context, x, y);
    this.markPeak(context, x, y);
    for (const oom of this.view.failures(this.pool)) this.markFailure(context, area, x(oom.at));
    context.restore();
  }

  shadeStalls(context, area, x) {
    for (const lane of this.process.lanes) {
      if (lane.kind !== laneKind.waits) continue;
      const {columns: [begin, length, busy, , , , category]} = levelFor(lane.levels, this.view.range, area.w);
      for (let i = 0; i < begin.length; i++) {
        if (category[i] < firstStall || category[i] > lastStall) continue;
        const end = begin[i] + length[i];
        if (end < this.view.range[0] || begin[i] > this.view.range[1]) continue;
        const left = x(begin[i]);
        context.globalAlpha = 0.13 * Math.min(1, busy[i] / Math.max(1, length[i]));
        context.fillStyle = styleColour('quiet');
        context.fillRect(left, area.y, Math.max(0.5, x(end) - left), area.h);
      }
    }
    context.globalAlpha = 1;
  }

  drawReserved(context, x, y) {
    const {columns} = levelFor(this.pool.levels, this.view.range, this.place.clientWidth);
    const [times, , reserved] = columns;
    context.strokeStyle = styleColour('strong');
    context.lineWidth = 1.3;
    context.beginPath();
    let before = null;
    for (let i = Math.max(0, lastNotAbove(times, this.view.range[0])); i < times.length && times[i] <= this.view.range[1]; i++) {
      if (before === null) context.moveTo(x(times[i]), y(reserved[i]));
      else context.lineTo(x(times[i]), y(before));
      context.lineTo(x(times[i]), y(reserved[i]));
      before = reserved[i];
    }
    if (before !== null) context.lineTo(x(this.view.range[1]), y(before));
    context.stroke();
  }

  drawBudget(context, x, y) {
    context.strokeStyle = '#d55e00';
    context.lineWidth = 2.2;
    context.setLineDash([9, 5]);
    context.beginPath();
    this.pool.budget.forEach(([begin, bytes], i) => {
      const next = this.pool.budget[i + 1];
      context.moveTo(x(i === 0 ? 0 : begin), y(bytes));
      context.lineTo(x(next ? next[0] : this.process.duration), y(bytes));
    });
    context.stroke();
    context.setLineDash([]);
  }

  markPeak(context, x, y) {
    const {peak, peak_time: time} = this.pool;
    if (peak === 0 || time < this.view.range[0] || time > this.view.range[1]) return;
    context.fillStyle = styleColour('strong');
    context.beginPath();
    const [left, top] = [x(time), y(peak)];
    context.moveTo(left, top);
    context.lineTo(left - 5, top - 9);
    context.lineTo(left + 5, top - 9);
    context.fill();
  }

  markFailure(context, area, left) {
    context.strokeStyle = '#d55e00';
    context.fillStyle = '#d55e00';
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(left, area.y);
    context.lineTo(left, area.y + area.h);
    context.moveTo(left - 5, area.y + 3);
    context.lineTo(left + 5, area.y + 13);
    context.moveTo(left + 5, area.y + 3);
    context.lineTo(left - 5, area.y + 13);
    context.stroke();
    context.font = '600 12px system-ui, sans-serif';
    const room = left > area.x + area.w - 110;
    context.textAlign = room ? 'right' : 'left';
    context.fillText('out of memory', left + (room ? -9 : 9), area.y + 13);
  }

  describe() {
    const legend = document.getElementById('legend');
    legend.replaceChildren(...this.layers.map((layer) => legendEntry(layer.name, layer.colour)));
    legend.append(legendEntry('reserved', 'var(--strong)', 'line'));
    if (this.pool.budget.length) legend.append(legendEntry('budget', '#d55e00', 'dashed'));
    legend.append(legendEntry('a frontend is held back', 'var(--quiet)', 'faint'));
    this.place.setAttribute('aria-label',
      `Memory of ${this.pool.name} over ${formatTime(this.process.duration)}: at most ${formatBytes(this.pool.peak)} held, ` +
      `at ${formatTime(this.pool.peak_time)}; budget ${this.pool.budget.length ? formatBytes(budgetAt(this.pool, this.pool.peak_time)) : 'not known'}.`);
  }

  /** Describes the held memory at a time in lines. */
  valuesAt(time) {
    const {columns} = levelFor(this.pool.levels, this.view.range, this.place.clientWidth);
    const row = lastNotAbove(columns[0], time);
    if (row < 0) return {text: 'nothing yet', layers: []};
    const batch = columns[memoryColumn.batch][row];
    const awaiting = columns[memoryColumn.awaiting][row];
    const budget = budgetAt(this.pool, time);
    return {
      text: `${formatBytes(columns[1][row])} held${budget ? ` of ${formatBytes(budget)}` : ''}, ` +
        `${formatBytes(columns[2][row])} reserved` +
        `${awaiting ? `, ${formatBytes(awaiting)} freed and not passed by the device` : ''}${batch ? `, batch ${batch}` : ''}`,
      layers: this.layers.map((layer) => [layer.name, layer.value(columns, row)]).filter(([, bytes]) => bytes > 0),
    };
  }
}

/** The areas of the fragmentation picture, from the top down. */
const unusedAreas = [{name: 'reserved, not held', colour: '#0072b2'}, {name: 'lost to rounding', colour: '#e69f00'}];

/** Draws unused reserved bytes, and bytes lost to rounding. */
class UnusedChart {
  constructor(place, view) {
    this.place = place;
    this.view = view;
  }

  show(process, pool) {
    if (this.graph) this.graph.destroy();
    Object.assign(this, {process, pool});
    this.graph = new Dygraph(this.place, this.rows(), {
      labels: ['time', ...unusedAreas.map((area) => area.name)], colors: unusedAreas.map((area) => area.colour), stackedGraph: true,
      stepPlot: true, fillAlpha: 0.7, strokeWidth: 0.6, legend: 'never', rightGap: 8, highlightCircleSize: 0, animatedZooms: false,
      includeZero: true, axisLabelFontSize: 12, dateWindow: this.view.range.map((t) => t / 1e9), interactionModel: {},
      gridLineColor: styleColour('faint'), axisLineColor: styleColour('line'),
      axes: {
        x: {axisLabelFormatter: (v) => formatMoment(v * 1e9, this.view.range[1] - this.view.range[0])},
        y: {ticker: bytesTicker, axisLabelWidth: 62},
      },
    });
    document.getElementById('unused-legend').replaceChildren(...unusedAreas.map((area) => legendEntry(area.name, area.colour)));
    this.place.setAttribute('aria-label', `Memory of ${pool.name} that is reserved and not held, over time`);
  }

  rows() {
    const {columns} = levelFor(this.pool.levels, this.view.range, Math.max(200, this.place.clientWidth));
    const [times, held, reserved, requested, allocated] = columns;
    const rows = [];
    const to = Math.min(times.length - 1, lastNotAbove(times, this.view.range[1]) + 1);
    for (let i = Math.max(0, lastNotAbove(times, this.view.range[0])); i <= to; i++) {
      rows.push([times[i] / 1e9, Math.max(0, reserved[i] - held[i]), Math.max(0, allocated[i] - requested[i])]);
    }
    return rows.length ? extend(rows, this.view.range) : [[0, 0, 0], [1, 0, 0]];
  }

  update() {
    this.graph.updateOptions({file: this.rows(), dateWindow: this.view.range.map((t) => t / 1e9),
                              gridLineColor: styleColour('faint'), axisLineColor: styleColour('line')});
  }
}
