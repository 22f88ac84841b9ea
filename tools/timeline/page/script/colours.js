// Colours that people with any colour vision can distinguish (Okabe and Ito), and their meanings.

const palette = ['#0072b2', '#e69f00', '#009e73', '#56b4e9', '#cc79a7', '#f0e442', '#d55e00'];

/** Indexed by Category of tools/timeline/page/activity_rows.hpp. */
const categories = [
  {word: 'compute', colour: '#0072b2'},
  {word: 'copy in', colour: '#e69f00'},
  {word: 'copy out', colour: '#cc79a7'},
  {word: 'copy', colour: '#f0e442'},
  {word: 'set', colour: '#009e73'},
  {word: 'waits for another stream', colour: '#9aa4af', hatched: true},
  {word: 'stall: budget', colour: '#d55e00'},
  {word: 'stall: run-ahead', colour: '#56b4e9'},
  {word: 'stall: another’s turn', colour: '#f0e442'},
  {word: 'allocation waits', colour: '#cc79a7'},
  {word: 'allocation waits for other batches', colour: '#cc79a7', hatched: true},
  {word: 'barrier', colour: 'strong'},
  {word: 'synchronisation', colour: 'strong', hatched: true},
  {word: 'submits', colour: '#9aa4af'},
  {word: 'driver calls', colour: '#009e73'},
  {word: 'profiler', colour: '#9aa4af', hatched: true},
  {word: 'idle: barrier', colour: 'strong'},
  {word: 'idle: an allocation waited', colour: '#cc79a7'},
  {word: 'idle: budget', colour: '#d55e00'},
  {word: 'idle: throttled', colour: '#56b4e9'},
  {word: 'idle: launch held back', colour: '#56b4e9', hatched: true},
  {word: 'idle: loader', colour: '#e69f00'},
  {word: 'idle: launch', colour: '#009e73'},
  {word: 'idle: nothing known', colour: '#9aa4af', hatched: true},
];
const firstStall = 6;
const lastStall = 8;

/** Returns a colour of the page's style, which depends on dark, light and print. */
function styleColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function colourOf(category) {
  const known = categories[category] || {colour: '#9aa4af'};
  return known.colour === 'strong' ? styleColour('strong') : known.colour;
}

/** Fills a rectangle, with stripes if `hatched` is set. */
function fillBox(context, x, y, width, height, colour, hatched) {
  context.fillStyle = colour;
  if (!hatched) {
    context.fillRect(x, y, width, height);
    return;
  }
  const alpha = context.globalAlpha;
  context.globalAlpha = alpha * 0.3;
  context.fillRect(x, y, width, height);
  context.globalAlpha = alpha;
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.beginPath();
  for (let at = x - height - ((x - height) % 6); at < x + width; at += 6) {
    context.moveTo(at, y + height);
    context.lineTo(at + height, y);
  }
  context.stroke();
  context.restore();
}

/** Makes a legend entry: a colour sample and its word. */
function legendEntry(word, colour, shape) {
  const space = 'http://www.w3.org/2000/svg';
  const picture = document.createElementNS(space, 'svg');
  picture.setAttribute('width', 18);
  picture.setAttribute('height', 12);
  picture.setAttribute('aria-hidden', 'true');
  const add = (tag, attributes) => {
    const made = document.createElementNS(space, tag);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    picture.append(made);
  };
  if (shape === 'dashed' || shape === 'line') {
    add('line', {x1: 0, y1: 6, x2: 18, y2: 6, stroke: colour, 'stroke-width': 2.5,
                 'stroke-dasharray': shape === 'dashed' ? '6 4' : 'none'});
  } else {
    add('rect', {width: 18, height: 12, fill: colour, opacity: shape === 'hatched' ? 0.35 : shape === 'faint' ? 0.2 : 1});
    if (shape === 'hatched') {
      for (const x of [-4, 2, 8, 14]) add('line', {x1: x, y1: 12, x2: x + 12, y2: 0, stroke: colour, 'stroke-width': 1.5});
    }
  }
  const entry = element('li');
  const name = element('span', word);
  name.dir = 'auto';
  name.title = word;
  entry.append(picture, name);
  return entry;
}
