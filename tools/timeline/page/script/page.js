// The visible time range, and the user's input that changes it.

const byId = (id) => document.getElementById(id);

const view = {
  range: [0, 1],
  cursor: null,  // a time, moved by the keyboard
  picked: null,  // the moment whose holders are listed
  process: null,
  pool: null,
  area: () => {
    const graph = view.memory.graph;
    return graph ? graph.getArea() : {x: 62, w: Math.max(50, byId('lanes').clientWidth - 70)};
  },
  failures: (pool) => view.process.failures.filter((one) => !pool.driver && one.source === pool.source),
  /** Called when the user moved the memory picture; updates the rest of the page. */
  moved: (range) => {
    const tiny = (view.range[1] - view.range[0]) / 1e6;
    if (Math.abs(range[0] - view.range[0]) > tiny || Math.abs(range[1] - view.range[1]) > tiny) setRange(range);
  },
  pick: (time) => pick(time),
};
view.memory = new MemoryChart(byId('memory'), view);
view.lanes = new LanesChart(byId('lanes'), view);
view.unused = new UnusedChart(byId('unused'), view);

let drawing = false;
/** Draws at the next animation frame, once for any number of calls. */
function drawSoon() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    drawNow();
  });
}
function drawNow() {
  if (view.pool) {
    view.memory.update();
    view.unused.update();
  }
  view.lanes.draw();
  placeCursor(view.cursor);
}

function setRange([begin, end]) {
  const whole = view.process.duration;
  const length = Math.min(whole, Math.max(end - begin, Math.min(whole, 1000)));
  const from = Math.max(0, Math.min(begin, whole - length));
  view.range = [from, from + length];
  drawSoon();
}
/** Zooms around the time `centre`, which keeps its place. */
function zoom(factor, centre = (view.range[0] + view.range[1]) / 2) {
  setRange(view.range.map((t) => centre + (t - centre) * factor));
}
function move(share) {
  const step = (view.range[1] - view.range[0]) * share;
  setRange(view.range.map((t) => t + step));
}
function showAll() {
  setRange([0, view.process.duration]);
}

function timeAt(clientX) {
  const area = view.area();
  const left = byId('timeline').getBoundingClientRect().left + area.x;
  return view.range[0] + ((clientX - left) / area.w) * (view.range[1] - view.range[0]);
}

function pick(time) {
  if (!view.pool) return;
  view.picked = showHolders(view.process, view.pool, Math.max(0, Math.min(Math.round(time), view.process.duration)));
}

function readOut(time) {
  const span = view.range[1] - view.range[0];
  const parts = [formatMoment(time, span)];
  if (view.pool) {
    const {text, layers} = view.memory.valuesAt(time);
    parts.push(text);
    const named = layers.slice(0, 6).map(([name, bytes]) => `${formatBytes(bytes)} ${name.slice(0, 60)}`);
    if (named.length) parts.push(named.join(', '));
  }
  parts.push(view.lanes.batchesAt(time));
  byId('readout').textContent = parts.join(' · ');
  return parts;
}

function placeCursor(time) {
  const line = byId('cursor');
  const outside = time === null || time < view.range[0] || time > view.range[1];
  line.hidden = outside;
  if (outside) return;
  const area = view.area();
  line.style.left = `${area.x + ((time - view.range[0]) / (view.range[1] - view.range[0])) * area.w}px`;
}

function hover(event) {
  const time = timeAt(event.clientX);
  const tooltip = byId('tooltip');
  if (time < view.range[0] || time > view.range[1]) {
    leave();
    return;
  }
  placeCursor(time);
  const parts = readOut(time);
  const lanes = byId('lanes').getBoundingClientRect();
  const inLanes = event.clientY >= lanes.top ? view.lanes.runAt(time, event.clientY - lanes.top) : null;
  tooltip.textContent = event.clientY >= lanes.top ? `${parts[0]}\n${inLanes || ''}` : parts.slice(0, 2).join('\n');
  tooltip.hidden = false;
  const right = event.clientX + 16 + tooltip.offsetWidth > innerWidth;
  tooltip.style.left = `${right ? Math.max(4, event.clientX - 12 - tooltip.offsetWidth) : event.clientX + 16}px`;
  tooltip.style.top = `${Math.min(event.clientY + 14, innerHeight - tooltip.offsetHeight - 6)}px`;
}
function leave() {
  byId('tooltip').hidden = true;
  placeCursor(view.cursor);
}

function moveCursor(share) {
  const [begin, end] = view.range;
  const from = view.cursor === null || view.cursor < begin || view.cursor > end ? (begin + end) / 2 : view.cursor;
  view.cursor = Math.max(begin, Math.min(end, from + (end - begin) * share));
  placeCursor(view.cursor);
  readOut(view.cursor);
}

const keys = {
  '+': () => zoom(0.5), '=': () => zoom(0.5), '-': () => zoom(2), _: () => zoom(2), '0': showAll,
  ArrowLeft: (event) => (event.shiftKey ? moveCursor(-0.01) : move(-0.15)),
  ArrowRight: (event) => (event.shiftKey ? moveCursor(0.01) : move(0.15)),
  Enter: () => pick(view.cursor ?? (view.range[0] + view.range[1]) / 2),
};

function listen() {
  const timeline = byId('timeline');
  timeline.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key](event);
  });
  timeline.addEventListener('wheel', (event) => {
    if (event.ctrlKey || event.deltaY === 0 || Math.abs(event.deltaX) > Math.abs(event.deltaY)) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, timeAt(event.clientX));
  }, {passive: false});
  timeline.addEventListener('mousemove', hover);
  timeline.addEventListener('mouseleave', leave);
  dragLanes(byId('lanes'));
  byId('zoom-in').addEventListener('click', () => zoom(0.5));
  byId('zoom-out').addEventListener('click', () => zoom(2));
  byId('zoom-all').addEventListener('click', showAll);
  byId('process').addEventListener('change', (event) => showProcess(data.processes[event.target.value]));
  byId('pool').addEventListener('change', (event) => showPool(view.process.pools[event.target.value]));
  byId('keying').addEventListener('change', () => showPool(view.pool));
  for (const query of ['(prefers-color-scheme: dark)', 'print']) matchMedia(query).addEventListener('change', redraw);
  addEventListener('beforeprint', redraw);
  addEventListener('afterprint', redraw);
  new ResizeObserver(redraw).observe(byId('memory').parentElement);
}

/** Makes the lanes zoom and pick like the memory picture. */
function dragLanes(canvas) {
  let from = null;
  canvas.addEventListener('pointerdown', (event) => {
    from = event.clientX;
  });
  canvas.addEventListener('pointerup', (event) => {
    if (from === null) return;
    const times = [timeAt(from), timeAt(event.clientX)].sort((a, b) => a - b);
    if (Math.abs(event.clientX - from) > 6) setRange(times);
    else pick(times[0]);
    from = null;
  });
  canvas.addEventListener('dblclick', showAll);
}

/** Redraws after colours or sizes changed. */
function redraw() {
  if (view.pool) {
    view.memory.graph.resize();
    view.unused.graph.resize();
  }
  drawNow();
}

function fillSelect(select, names, chosen) {
  select.replaceChildren(...names.map((name, i) => {
    const option = element('option', name.length > 80 ? `${name.slice(0, 80)}…` : name);
    option.value = i;
    return option;
  }));
  select.value = chosen;
}

function showPool(pool) {
  view.pool = pool;
  view.memory.show(view.process, pool, Number(byId('keying').value));
  view.unused.show(view.process, pool);
  byId('unused-words').textContent = pool.unused;
  view.lanes.draw();
  pick(view.picked ? view.picked.time : pool.peak_time);
}

async function showProcess(process) {
  await unpackProcess(process);
  Object.assign(view, {process, pool: null, picked: null, cursor: null, range: [0, process.duration]});
  showSummary(process);
  fillSelect(byId('pool'), process.pools.map((pool) => pool.name), 0);
  for (const id of ['memory', 'unused']) byId(id).hidden = process.pools.length === 0;
  view.lanes.show(process);
  const pools = process.pools;
  if (pools.length) showPool(pools[process.main_pool] || pools[0]);
  else byId('holders-when').textContent = 'No pool told what it held.';
  byId('pool').value = Math.max(0, pools.indexOf(view.pool));
  view.lanes.draw();
  showPeaks(process);
  showIdle(process);
  showBarriers(process);
  showTasks(process);
}

async function start() {
  fillSelect(byId('process'), data.processes.map((process) => process.name), 0);
  byId('chooser').hidden = data.processes.length < 2;
  listen();
  byId('overview').textContent = [...data.overview.slice(-1), ...data.overview.slice(0, -1)].join('\n');
  if (data.processes.length) await showProcess(data.processes[0]);
  else byId('summary').textContent = 'The timeline has no process in it.';
  document.documentElement.dataset.ready = 'yes';
}
start();
