# SPDX-License-Identifier: BSD-2-Clause
"""Lies that a program's file can tell while the program still runs: the kernel reads its first page and its segments,
whoever wants names and unwind rows reads the rest."""
import struct

SECTION = struct.Struct("<IIQQQQIIQQ")  # name, type, flags, address, offset, size, link, info, align, entry size
NAME, TYPE, _, _, OFFSET, SIZE, LINK, INFO, _, ENTRY = range(10)
FLIPS = 400


class Elf:
    """A little-endian ELF64 file whose section headers can be changed."""

    def __init__(self, content):
        self.content = bytearray(content)
        self.table, = struct.unpack_from("<Q", content, 0x28)
        self.count, names = struct.unpack_from("<HH", content, 0x3c)
        self.rows = [list(SECTION.unpack_from(content, self.table + i * SECTION.size)) for i in range(self.count)]
        text = self.rows[names]
        self.names = [content[text[OFFSET] + row[NAME]:].split(b"\0", 1)[0].decode() for row in self.rows]

    def row(self, name):
        return self.rows[self.names.index(name)]

    def change(self, name, **values):
        """Keys are the columns' names in small letters."""
        row = self.row(name)
        for key, value in values.items():
            row[globals()[key.upper()]] = value
        return self.written()

    def written(self):
        for i, row in enumerate(self.rows):
            SECTION.pack_into(self.content, self.table + i * SECTION.size, *row)
        return bytes(self.content)

    def noise(self, name, random, first=0):
        """Bytes of the section are exchanged, from `first` on."""
        row = self.row(name)
        for _ in range(FLIPS):
            at = row[OFFSET] + random.randrange(first, row[SIZE])
            self.content[at] = random.choice((0, 1, 0x7f, 0x80, 0xff, random.randrange(256)))
        return bytes(self.content)

    def put(self, place, layout, *values):
        struct.pack_into(layout, self.content, place, *values)
        return bytes(self.content)


def note(elf, random, layout, at, *values):
    return elf.put(elf.row(".note.gnu.build-id")[OFFSET] + at, layout, *values)


HUGE = (1 << 63) - 1
LIES = {
    "truth": lambda elf, random: bytes(elf.content),
    "cut behind the segments": lambda elf, random: bytes(elf.content[:elf.table - 100]),
    "cut in the section headers": lambda elf, random: bytes(elf.content[:elf.table + 70]),
    "section headers nowhere": lambda elf, random: elf.put(0x28, "<Q", HUGE),
    "section headers at the first byte": lambda elf, random: elf.put(0x28, "<Q", 0),
    "65535 sections": lambda elf, random: elf.put(0x3c, "<HH", 0xffff, 0xfffe),
    "counted by the first section": lambda elf, random: elf.put(0x3c, "<HH", 0, 0xffff) and
        elf.put(elf.table + 32, "<Q", 1 << 40),
    "section headers of one byte": lambda elf, random: elf.put(0x3a, "<H", 1),
    "symbols without end": lambda elf, random: elf.change(".symtab", size=HUGE),
    "symbols of no bytes": lambda elf, random: elf.change(".symtab", entry=0),
    "symbols named by themselves": lambda elf, random: elf.change(".symtab", link=elf.names.index(".symtab")),
    "names in a circle": lambda elf, random: elf.change(".strtab", link=elf.names.index(".strtab"), type=2, entry=24),
    "every section everywhere": lambda elf, random: [row.__setitem__(slice(OFFSET, LINK), [0, HUGE])
                                                    for row in elf.rows] and elf.written(),
    "symbols of noise": lambda elf, random: elf.noise(".symtab", random),
    "a build-id without end": lambda elf, random: note(elf, random, "<I", 4, 0xffffffff),
    "a build-id of no bytes": lambda elf, random: note(elf, random, "<I", 4, 0),
    "another build-id": lambda elf, random: note(elf, random, "20s", 16, random.randbytes(20)),
    "a note without end": lambda elf, random: note(elf, random, "<I", 0, 0xfffffff0),
    "unwind rows of noise": lambda elf, random: elf.noise(".eh_frame", random, 8),
    "unwind rows without end": lambda elf, random: elf.change(".eh_frame", size=HUGE),
    "an unwind row that is its own parent": lambda elf, random: elf.put(elf.row(".eh_frame")[OFFSET] + 28, "<I", 0),
    "an unwind row of 4 GiB": lambda elf, random: elf.put(elf.row(".eh_frame")[OFFSET], "<I", 0xfffffff0),
    "an unwind index of noise": lambda elf, random: elf.noise(".eh_frame_hdr", random),
    "an unwind index without end": lambda elf, random: elf.put(elf.row(".eh_frame_hdr")[OFFSET] + 8, "<I", 0xffffffff),
    "all unwind sections of noise": lambda elf, random: elf.noise(".eh_frame_hdr", random) and
        elf.noise(".eh_frame", random),
}
