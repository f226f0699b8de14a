# SPDX-License-Identifier: BSD-2-Clause
"""Single steps through a program of a virtual machine, by qemu's remote protocol for debuggers: what ran, and what it read
and wrote, instruction by instruction. Interrupts and timers wait meanwhile, so that nothing else is seen."""
import re
import socket
import struct

import capstone
from capstone import x86

REGISTERS = "rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip".split()
RSP, RIP = REGISTERS.index("rsp"), REGISTERS.index("rip")
GS_BASE = 172  # where it stands in the answer to `g`
PIECE = 1024  # bytes of code that are read at once: an answer has at most 4096 characters
STEPS_MAX = 200000


class Debugger:
    """Talks to qemu by the protocol."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.socket.settimeout(120)
        self.received = b""
        self.pieces = {}
        self.interrupt()

    def answer(self):
        while True:
            found = re.search(rb"\$([^#]*)#..", self.received)
            if found:
                self.received = self.received[found.end():]
                self.socket.send(b"+")
                return found.group(1).decode()
            self.received += self.socket.recv(65536)

    def send(self, text):
        data = text.encode()
        self.socket.send(b"$%s#%02x" % (data, sum(data) & 255))

    def ask(self, text):
        self.send(text)
        return self.answer()

    def interrupt(self):
        """A machine that a debugger comes to has stopped, and may say so twice."""
        self.socket.send(b"\x03")
        self.answer()
        self.ask("Qqemu.sstep=7")  # no interrupts, no timers
        self.socket.settimeout(1)
        try:
            self.answer()
        except TimeoutError:
            pass
        self.socket.settimeout(120)

    def resume(self):
        self.send("c")

    def run_to(self, address):
        self.ask(f"Z1,{address:x},1")
        self.ask("c")
        self.ask(f"z1,{address:x},1")

    def registers(self):
        data = bytes.fromhex(self.ask("g").replace("x", "0"))
        return struct.unpack_from("<17Q", data), struct.unpack_from("<Q", data, GS_BASE)[0]

    def code(self, address):
        """the bytes of one instruction and what follows"""
        data = b""
        while len(data) < 16:
            at = (address + len(data)) // PIECE * PIECE
            if at not in self.pieces:
                self.pieces[at] = bytes.fromhex(self.ask(f"m{at:x},{PIECE:x}"))
            begin = address + len(data) - at
            data += self.pieces[at][begin:begin + 16 - len(data)]
        return data


class Decoder:
    """What each instruction touches."""

    def __init__(self):
        self.machine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
        self.machine.detail = True
        self.known = {}

    def instruction(self, address, code):
        if address not in self.known:
            self.known[address] = next(self.machine.disasm(code, address))
        return self.known[address]

    def touched(self, ins, registers, gs_base):
        """addresses of memory"""
        value = dict(zip(REGISTERS, registers))
        if ins.mnemonic in ("push", "call"):
            yield value["rsp"] - 8
        elif ins.mnemonic in ("pop", "ret", "leave"):
            yield value["rsp"]
        for operand in ins.operands:
            if operand.type != x86.X86_OP_MEM or ins.mnemonic in ("lea", "nop"):
                continue
            memory = operand.mem
            address = memory.disp + memory.scale * (value[ins.reg_name(memory.index)] if memory.index else 0)
            if memory.base:
                name = ins.reg_name(memory.base)
                address += ins.address + ins.size if name == "rip" else value[name]
            if memory.segment == x86.X86_REG_GS:
                address += gs_base
            yield address % 2**64


def trace(debugger, begin):
    """Waits until the program at `begin` runs; then each of its instructions: (address, bytes, registers, gs_base)."""
    debugger.run_to(begin)
    registers, gs_base = debugger.registers()
    top, steps = registers[RSP], []
    while registers[RSP] <= top:
        steps.append((registers[RIP], registers, gs_base))
        if len(steps) > STEPS_MAX:
            raise RuntimeError(f"the program at {begin:#x} does not return")
        debugger.ask("s")
        registers, gs_base = debugger.registers()
    return [(at, debugger.code(at), values, gs_base) for at, values, gs_base in steps]
