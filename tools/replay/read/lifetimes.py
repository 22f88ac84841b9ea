"""Turns ordered allocations and frees into buffer lifetimes, and writes the CSV that `weir replay` reads.
Needs only Python."""

import gzip

HEADER = ("buffer", "start", "end", "size")


class Lifetimes:
    """Follows allocations and frees. Each is an event; events count from 0.

    A reused address is a new buffer. Allocations of zero bytes are ignored and are no events. A buffer
    that is never freed ends one past the last event.
    """

    def __init__(self):
        self.events = 0
        self.rows = []  # [start, end or None, size, stream], in the order of start
        self._live = {}  # address -> row
        self._empty = set()

    def allocate(self, address, size, stream=0):
        if address in self._live or address in self._empty:
            raise ValueError(f"{address:#x} is allocated twice")
        if size == 0:
            self._empty.add(address)
            return
        row = [self.events, None, size, stream]
        self.rows.append(row)
        self._live[address] = row
        self.events += 1

    def free(self, address):
        """Ends the buffer at `address` and returns its size, or None if there is none."""
        if address in self._empty:
            self._empty.remove(address)
            return 0
        row = self._live.pop(address, None)
        if row is None:
            return None
        row[1] = self.events
        self.events += 1
        return row[2]

    def peak(self):
        """Returns the most bytes live at once."""
        changes = [0] * self.events
        for start, end, size, _ in self.rows:
            changes[start] += size
            if end is not None:
                changes[end] -= size
        total = most = 0
        for change in changes:
            total += change
            most = max(most, total)
        return most

    def write(self, file, streams=False):
        """Writes the CSV to `file`, with the column `stream` if `streams` is set."""
        file.write(",".join(HEADER + (("stream",) if streams else ())) + "\n")
        for buffer, (start, end, size, stream) in enumerate(self.rows):
            line = f"{buffer},{start},{self.events if end is None else end},{size}"
            file.write(f"{line},{stream}\n" if streams else f"{line}\n")


class CsvFile:
    """Writes a text file, through gzip if its name ends in .gz. Equal lines give equal bytes."""

    def __init__(self, path):
        self._file = open(path, "wb")
        # No time and no name in the gzip header: a trace recorded again gives the same file.
        self._out = (
            gzip.GzipFile("", "wb", 9, self._file, mtime=0) if str(path).endswith(".gz") else self._file
        )

    def write(self, text):
        self._out.write(text.encode("ascii"))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._out.close()
        self._file.close()
