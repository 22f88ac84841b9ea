// Formats figures for people, and makes elements that show untrusted texts as text.

function formatBytes(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  while (Math.abs(bytes) >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    unit++;
  }
  const digits = unit === 0 || Math.abs(bytes) >= 100 ? 0 : Math.abs(bytes) >= 10 ? 1 : 2;
  return `${bytes.toFixed(digits)} ${units[unit]}`;
}

function formatTime(ns) {
  if (ns >= 1e9) return `${(ns / 1e9).toFixed(2)} s`;
  if (ns >= 1e6) return `${(ns / 1e6).toPrecision(3)} ms`;
  if (ns >= 1e3) return `${(ns / 1e3).toPrecision(3)} µs`;
  return `${ns.toFixed(0)} ns`;
}

/** Formats a time with enough digits for a range of length `span`. */
function formatMoment(ns, span) {
  const digits = Math.min(9, Math.max(2, Math.ceil(-Math.log10(Math.max(span, 1) / 1e9 / 200))));
  return `${(ns / 1e9).toFixed(digits)} s`;
}

function formatShare(share) {
  const percent = share * 100;
  return `${percent >= 9.95 || percent === 0 ? percent.toFixed(0) : percent.toFixed(percent < 0.1 ? 2 : 1)}%`;
}

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

/** Fills a table. A column is {title, number}, a cell is a text, a node, or {text, value}. */
function fillTable(table, columns, rows, options = {}) {
  table.replaceChildren();
  if (options.caption) table.append(element('caption', options.caption));
  const head = element('tr');
  columns.forEach((column, k) => {
    const cell = element('th', options.sortable ? undefined : column.title, column.number ? 'number' : '');
    cell.scope = 'col';
    if (options.sortable) {
      const button = element('button', column.title);
      button.type = 'button';
      button.addEventListener('click', () => sortTable(table, k, cell));
      cell.append(button);
    }
    head.append(cell);
  });
  table.append(element('thead'));
  table.tHead.append(head);
  const body = element('tbody');
  for (const row of rows) {
    const line = element('tr', undefined, row.total ? 'total' : '');
    (row.cells || row).forEach((cell, k) => {
      const place = element('td', undefined, columns[k].number ? 'number' : columns[k].name ? 'name' : '');
      if (columns[k].name) place.dir = 'auto';
      if (cell instanceof Node) place.append(cell);
      else if (cell !== null && typeof cell === 'object') {
        place.textContent = cell.text;
        place.dataset.value = cell.value;
      } else place.textContent = cell;
      line.append(place);
    });
    body.append(line);
  }
  table.append(body);
}

/** Sorts the rows of a table by a column; a second call reverses the order. Totals stay last. */
function sortTable(table, column, head) {
  const down = head.getAttribute('aria-sort') !== 'descending';
  for (const other of table.tHead.rows[0].cells) other.removeAttribute('aria-sort');
  head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
  const rows = [...table.tBodies[0].rows];
  const keyOf = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
  const compare = (a, b) => {
    const [x, y] = [keyOf(a), keyOf(b)];
    const order = isNaN(x) || isNaN(y) || x === '' || y === '' ? x.localeCompare(y) : x - y;
    return down ? -order : order;
  };
  const totals = rows.filter((row) => row.classList.contains('total'));
  const others = rows.filter((row) => !row.classList.contains('total'));
  table.tBodies[0].append(...others.sort(compare), ...totals);
}
