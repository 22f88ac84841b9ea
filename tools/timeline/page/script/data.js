'use strict';
// The page's data: tables of numbers, packed by tools/timeline/page/data.cpp.

const data = JSON.parse(document.getElementById('data').textContent);

/** Returns the columns of a packed table as arrays of numbers. */
async function unpack(table) {
  const packed = Uint8Array.from(atob(table.data), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const columns = [];
  let at = 0;
  for (let k = 0; k < table.columns; k++) {
    const column = new Float64Array(table.rows);
    let value = 0;
    for (let i = 0; i < table.rows; i++) {
      let bits = 0;
      let scale = 1;
      let byte = 0;
      do {
        byte = bytes[at++];
        bits += (byte & 127) * scale;
        scale *= 128;
      } while (byte > 127);
      value += bits % 2 ? -(bits + 1) / 2 : bits / 2;
      column[i] = value;
    }
    columns.push(column);
  }
  return columns;
}

/** Unpacks each level and keeps the duration of its columns. */
async function unpackLevels(levels) {
  return Promise.all(levels.map(async (level) => ({step: level.step, columns: await unpack(level)})));
}

/** Turns the first column, differences of neighbours, into times. */
function sumUp(column) {
  for (let i = 1; i < column.length; i++) column[i] += column[i - 1];
}

async function unpackProcess(process) {
  if (process.unpacked) return;
  for (const pool of process.pools) {
    pool.levels = await unpackLevels(pool.levels);
    pool.blocks = await unpack(pool.blocks);
    pool.moments = await unpack(pool.moments);
  }
  for (const lane of process.lanes) {
    lane.levels = await unpackLevels(lane.levels);
    for (const level of lane.levels) sumUp(level.columns[0]);
  }
  process.batches = await unpackLevels(process.batches);
  process.unpacked = true;
}

/** Returns the coarsest level with a column for each of `pixels` of `range`. */
function levelFor(levels, range, pixels) {
  return levels.find((level) => level.step <= (range[1] - range[0]) / pixels) || levels[levels.length - 1];
}

/** Returns the index of the last entry of a sorted array that is at most `value`; -1 if there is none. */
function lastNotAbove(sorted, value) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Returns the largest live blocks at `time`, like alive_at of tools/timeline/page/memory.hpp. */
function blocksAt(pool, time) {
  const [begin, length, bytes] = pool.blocks;
  const alive = [];
  const end = lastNotAbove(begin, time);
  for (let i = 0; i <= end; i++) {
    if (time < begin[i] + length[i]) alive.push(i);
  }
  return alive.sort((a, b) => bytes[b] - bytes[a] || a - b);
}

/** Returns the moment nearest to `time` at which the page knows every large block. */
function momentNear(pool, time) {
  const [times] = pool.moments;
  if (times.length === 0) return {time, exact: true};
  const before = Math.max(0, lastNotAbove(times, time));
  const after = Math.min(times.length - 1, before + 1);
  const index = time - times[before] <= times[after] - time ? before : after;
  return {time: times[index], exact: false, blocks: pool.moments[1][index], bytes: pool.moments[2][index]};
}
