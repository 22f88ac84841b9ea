// The results of the analysis, in words and tables.

function showSummary(process) {
  const notes = document.getElementById('notes');
  notes.replaceChildren(...process.notes.map((note) => element('p', note, 'note')));
  const summary = document.getElementById('summary');
  summary.textContent = process.summary;
  summary.className = process.alarm ? 'note' : '';
}

const holderColumns = [{title: 'Bytes', number: true}, {title: 'Label', name: true}, {title: 'Batch', number: true},
                       {title: 'Kind', name: true}, {title: 'Call site', name: true}, {title: 'Held for', number: true}];

/** Lists the largest blocks at a moment of a pool. */
function showHolders(process, pool, time) {
  const moment = momentNear(pool, time);
  const all = blocksAt(pool, moment.time);
  const most = moment.exact ? 20 : pool.largest;
  const [begin, length, bytes, , label, site, kind, batch, before] = pool.blocks;
  const shown = all.slice(0, most);
  const rows = shown.map((i) => [
    {text: formatBytes(bytes[i]), value: bytes[i]}, process.texts[label[i]] || '', batch[i] || '',
    process.texts[kind[i]] || '', process.texts[site[i]] || '',
    before[i] ? 'since before' : formatTime(Math.min(length[i], process.duration - begin[i]))]);
  const count = moment.exact ? all.length : moment.blocks;
  const sum = moment.exact ? all.reduce((a, i) => a + bytes[i], 0) : moment.bytes;
  const rest = sum - shown.reduce((a, i) => a + bytes[i], 0);
  if (count > shown.length) {
    rows.push({total: true, cells: [{text: formatBytes(rest), value: rest}, `${count - shown.length} smaller blocks`, '', '', '', '']});
  }
  const {columns} = pool.levels[pool.levels.length - 1];
  const row = lastNotAbove(columns[memoryColumn.time], moment.time);
  const awaiting = row < 0 ? 0 : columns[memoryColumn.awaiting][row];
  if (awaiting > 0) {
    rows.push({total: true, cells: [{text: formatBytes(awaiting), value: awaiting}, 'freed, and not passed by the device yet', '', '', '', '']});
  }
  fillTable(document.getElementById('holders'), holderColumns, rows, {sortable: true});
  document.getElementById('holders-when').textContent =
    `${count} blocks, ${formatBytes(sum)}, in ${pool.name} at ${formatMoment(moment.time, process.duration / 1e4)}` +
    (moment.exact || moment.time === time ? '' : ' (the nearest moment that this page keeps)') + '; the largest first.';
  return moment;
}

function holdingTable(holding, caption) {
  const table = element('table');
  const rows = holding.holders.map((one) => [
    {text: formatBytes(one.bytes), value: one.bytes}, one.key, {text: `${one.blocks}`, value: one.blocks}]);
  fillTable(table, [{title: 'Bytes', number: true}, {title: holding.by, name: true}, {title: 'Blocks', number: true}],
            rows.map((cells, i) => (holding.holders[i].rest ? {total: true, cells} : cells)), {caption});
  return table;
}

function showPeaks(process) {
  const place = document.getElementById('peak-tables');
  place.replaceChildren();
  for (const peak of process.peaks) {
    place.append(element('h3', peak.title));
    for (const holding of peak.holdings) place.append(holdingTable(holding));
    if (peak.words) place.append(element('p', peak.words, 'quiet'));
  }
  if (process.peaks.length === 0) place.append(element('p', 'No pool told what it held.', 'quiet'));
}

function bar(share) {
  const made = element('span', undefined, 'bar');
  made.style.width = `${Math.max(0, Math.min(1, share)) * 90}px`;
  made.setAttribute('aria-hidden', 'true');
  return made;
}

function showIdle(process) {
  const place = document.getElementById('idle-tables');
  place.replaceChildren();
  for (const device of process.idle) {
    place.append(element('h3', `${device.device}: idle ${formatTime(device.idle)} of ${formatTime(device.recorded)}, ` +
      formatShare(device.recorded ? device.idle / device.recorded : 0)));
    const table = element('table');
    const rows = device.causes.filter((cause) => cause.total > 0).sort((a, b) => b.total - a.total).map((cause) => [
      cause.cause, {text: formatTime(cause.total), value: cause.total}, {text: formatShare(cause.total / device.recorded), value: cause.total},
      bar(cause.total / device.idle), {text: `${cause.count}`, value: cause.count}, cause.explanation]);
    fillTable(table, [{title: 'Cause'}, {title: 'Idle', number: true}, {title: 'Of the time', number: true}, {title: ''},
                      {title: 'Gaps', number: true}, {title: 'What it means', name: true}], rows);
    const scroll = element('div', undefined, 'scroll');
    scroll.append(rows.length ? table : element('p', 'It was never idle between its first work and its last.'));
    place.append(scroll);
  }
  if (process.idle.length === 0) place.append(element('p', 'No device told what it did.', 'quiet'));
}

function showBarriers(process) {
  const first = document.getElementById('first-barrier');
  first.textContent = process.first_barrier ? `The costliest: ${process.first_barrier}.` : '';
  first.hidden = !process.first_barrier;
  const table = document.getElementById('barriers');
  const rows = process.barriers.map((one) => [
    one.site, one.call, {text: `${one.count}`, value: one.count}, {text: formatTime(one.waited), value: one.waited},
    {text: formatTime(one.longest), value: one.longest}, {text: formatTime(one.idle_in), value: one.idle_in},
    {text: formatTime(one.idle_after), value: one.idle_after}]);
  fillTable(table, [{title: 'Call site', name: true}, {title: 'Call', name: true}, {title: 'Times', number: true},
                    {title: 'Waited', number: true}, {title: 'Longest', number: true}, {title: 'Device idle in it', number: true},
                    {title: 'Device idle after it', number: true}], rows, {sortable: true});
  if (rows.length === 0) fillTable(table, [{title: ''}], [['The program made no barrier.']]);
}

function showTasks(process) {
  const place = document.getElementById('task-tables');
  place.replaceChildren();
  for (const device of process.tasks) {
    place.append(element('h3', device.device));
    const table = element('table');
    const rows = device.rows.map((row) => ({total: row.total_row, cells: [
      row.name, row.group, {text: `${row.count}`, value: row.count},
      {text: row.timed ? (row.total / 1e6).toFixed(3) : '', value: row.total},
      {text: row.share ? formatShare(row.share) : '', value: row.share},
      {text: row.bytes ? formatBytes(row.bytes) : '', value: row.bytes},
      {text: row.rate ? `${formatBytes(row.rate)}/s` : '', value: row.rate}]}));
    fillTable(table, [{title: 'Operation', name: true}, {title: 'Group'}, {title: 'Count', number: true}, {title: 'Total ms', number: true},
                      {title: 'Share', number: true}, {title: 'Bytes', number: true}, {title: 'Per second', number: true}], rows, {sortable: true});
    const scroll = element('div', undefined, 'scroll');
    scroll.append(table);
    place.append(scroll);
  }
  if (process.tasks.length === 0) place.append(element('p', 'Nothing ran.', 'quiet'));
}
