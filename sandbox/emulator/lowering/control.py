"""How the lanes of a warp get from one basic block to the next.

All live lanes together jump directly. Where they have parted, those that run go on directly as well, as
long as they stand below all blocks where others wait (`state.lowest`): the scheduler would pick them.
Everything else goes to the scheduler, by way of `state.waiting`.
"""

from __future__ import annotations

from sandbox.emulator.lowering import abi
from sandbox.emulator.lowering.analysis import branch_target, index_targets, polling
from sandbox.emulator.lowering.builder import Builder, Value
from sandbox.ptx.model import Instruction


class ControlFlow(Builder):
    """The ends of blocks, and what is counted there."""

    def _terminator(self, instruction: Instruction, index: int) -> None:
        name = instruction.parts[0]
        if name == "trap":
            self._trap(index)
            return
        self.flush()
        if name == "bra":
            target = branch_target(instruction, self.analysis.labels)
            if self.guard is None:
                self._leave(index, target)
            else:
                self._branch(index, self.guard, target)
            return
        if name == "brx":
            self._branch_by_index(instruction, index)
            return
        if name == "exit" and not self.function.entry:
            live = self.op("load i32, ptr %warp_live.place")
            left = self.op(f"and i32 {live}, {self.op(f'xor i32 {self.effective_mask()}, -1')}")
            self.emit(f"store i32 {left}, ptr %warp_live.place")
        self._return(index)

    def _trap(self, index: int) -> None:
        mask = self.effective_mask()
        self.flush()
        go, stop = self.label(), self.label()
        self.declare("kw_trap", "void", "ptr, i32, i32")
        some = self.op(f"icmp ne i32 {mask}, 0")
        self.emit(f"br i1 {some}, label %{stop}, label %{go}")
        self.lines.append(f"{stop}:")
        self.emit(f"call void @kw_trap(ptr %w, i32 {self.line}, i32 {mask})")
        self.emit("unreachable")
        self.lines.append(f"{go}:")
        self._leave(index, index + 1)

    def _return(self, index: int) -> None:
        mask = self.effective_mask()
        live = self.op("load i32, ptr %live.place")
        left = self.op(f"and i32 {live}, {self.op(f'xor i32 {mask}, -1')}")
        self.emit(f"store i32 {left}, ptr %live.place")
        if self.guard is None:
            none = self.op(f"icmp eq i32 {left}, 0")
            self.emit(f"br i1 {none}, label %finished, label %schedule")
            return
        self._go_on(index, self.op(f"and i32 %M, {self.op(f'xor i32 {mask}, -1')}"))

    def _after_exits(self, index: int) -> None:
        """Lanes may have left the kernel in a call: the others go on."""
        self.flush()
        alive = self.op("load i32, ptr %warp_live.place")
        if not self.function.entry:
            live = self.op("load i32, ptr %live.place")
            self.emit(f"store i32 {self.op(f'and i32 {live}, {alive}')}, ptr %live.place")
        self.guard = None
        self._go_on(index, self.op(f"and i32 %M, {alive}"))

    def _go_on(self, index: int, rest: str) -> None:
        """The lanes of `rest`, if there are any, go to the next block."""
        self.emit(f"store i32 {rest}, ptr %state")
        none = self.op(f"icmp eq i32 {rest}, 0")
        on = self.label()
        self.emit(f"br i1 {none}, label %schedule, label %{on}")
        self.lines.append(f"{on}:")
        self._leave(index, index + 1, mask=rest)

    def _leave(self, index: int, target: int, mask: str = "%M") -> None:
        """The running lanes all go to `target`."""
        self.flush()
        if target >= len(self.analysis.blocks):  # falls off the end: a return
            self._return(index)
            return
        if target <= index:
            fuel = self.op("load i32, ptr %fuel.place")
            less = self.op(f"sub i32 {fuel}, 1")
            self.emit(f"store i32 {less}, ptr %fuel.place")
            empty = self.op(f"icmp slt i32 {less}, 0")
            out, on = self.label(), self.label()
            self.emit(f"br i1 {empty}, label %{out}, label %{on}")
            self.lines.append(f"{out}:")
            self.emit(f"store i32 {target}, ptr %state.target")
            polls = any(map(polling, self.analysis.blocks[target : index + 1]))
            self.emit(f"store i32 {2 * self.line + polls}, ptr %state.line")
            self.emit("br label %tired")
            self.lines.append(f"{on}:")
        live = self.op("load i32, ptr %live.place")
        together = self.op(f"icmp eq i32 {mask}, {live}")
        alone = self.label()
        self.emit(f"br i1 {together}, label %b{target}, label %{alone}")
        self.lines.append(f"{alone}:")
        park = self.label()
        below = self._below_waiting(target)[1]
        self.emit(f"br i1 {below}, label %b{target}, label %{park}")
        self.lines.append(f"{park}:")
        self.emit(f"store i32 {target}, ptr %state.target")
        self.emit("br label %park")

    def _below_waiting(self, block: int) -> tuple[str, str]:
        """The lowest block where lanes may wait; whether `block` is below, so that it would be picked."""
        lowest = self.op("load i32, ptr %state.lowest")
        return lowest, self.op(f"icmp ult i32 {block}, {lowest}")

    def _branch_by_index(self, instruction: Instruction, index: int) -> None:
        targets = index_targets(instruction, self.analysis.labels)
        table = ", ".join(f"i32 {target}" for target in targets)
        name = f"@kw_branches.{len(self.context.constants)}"
        self.context.constants.append(f"{name} = internal constant [{len(targets)} x i32] [{table}]")
        site = self.context.site(abi.SITE_BRANCH, self.line)
        self._bump(site, 0, "1")
        choice = self.pass_vector("in0", self.operand(instruction.operands[0], "i32"))
        mask = self.effective_mask()
        self.declare("kw_branch_by_index", "i32", "ptr, i32, ptr, i32, i32, ptr, ptr, i32")
        chosen = self.op(
            f"call i32 @kw_branch_by_index(ptr %w, i32 {self.line}, ptr %state, i32 {mask}, "
            f"i32 {index + 1}, ptr {choice}, ptr {name}, i32 {len(targets)})"
        )
        self.guard = None
        split = self.label()
        labels = {target: self.label() for target in sorted(set(targets))}
        self.emit(f"switch i32 {chosen}, label %{split} [")
        for target, label in labels.items():
            self.emit(f"  i32 {target}, label %{label}")
        self.emit("]")
        for target, label in labels.items():
            self.lines.append(f"{label}:")
            self._leave(index, target)
        self.lines.append(f"{split}:")
        self._bump(site, 1, "1")
        self.emit("br label %schedule")

    def _branch(self, index: int, guard: Value, target: int) -> None:
        site = self.context.site(abi.SITE_BRANCH, self.line)
        self._bump(site, 0, "1")
        taken_label, next_label = self.label(), self.label()
        if guard.scalar and guard.type == "i1":
            self.emit(f"br i1 {guard.text}, label %{taken_label}, label %{next_label}")
        else:
            taken = self.op(f"and i32 %M, {self.as_mask(guard)}")
            none = self.op(f"icmp eq i32 {taken}, 0")
            some, split = self.label(), self.label()
            self.emit(f"br i1 {none}, label %{next_label}, label %{some}")
            self.lines.append(f"{some}:")
            all_of_them = self.op(f"icmp eq i32 {taken}, %M")
            self.emit(f"br i1 {all_of_them}, label %{taken_label}, label %{split}")
            self.lines.append(f"{split}:")
            self._bump(site, 1, "1")
            self._split(index, taken, target)
        self.lines.append(f"{taken_label}:")
        self.guard = None
        self._leave(index, target)
        self.lines.append(f"{next_label}:")
        self._leave(index, index + 1)

    def _split(self, index: int, taken: str, target: int) -> None:
        """Some lanes go to `target`, the rest to the next block. Those of the lower block go first."""
        first, second = sorted((target, index + 1))
        if first != second and second < len(self.analysis.blocks):
            rest = self.op(f"and i32 %M, {self.op(f'xor i32 {taken}, -1')}")
            now, later = (taken, rest) if first == target else (rest, taken)
            lowest, below = self._below_waiting(first)
            direct, scheduled = self.label(), self.label()
            self.emit(f"br i1 {below}, label %{direct}, label %{scheduled}")
            self.lines.append(f"{direct}:")
            place = self.op(f"getelementptr i32, ptr %state.waiting, i64 {second}")
            waiting = self.op(f"or i32 {self.op(f'load i32, ptr {place}')}, {later}")
            self.emit(f"store i32 {waiting}, ptr {place}")
            self.emit(f"store i32 {now}, ptr %state")
            less = self.op(f"icmp ult i32 {second}, {lowest}")
            left = self.op(f"select i1 {less}, i32 {second}, i32 {lowest}")
            self.emit(f"store i32 {left}, ptr %state.lowest")
            self.emit(f"br label %b{first}")
            self.lines.append(f"{scheduled}:")
        self.declare("kw_split", "void", "ptr, ptr, i32, i32, i32")
        self.emit(f"call void @kw_split(ptr %w, ptr %state, i32 {taken}, i32 {target}, i32 {index + 1})")
        self.emit("br label %schedule")

    # Counters -------------------------------------------------------------------------------------------

    def _bump(self, site: int, counter: int, amount: str) -> None:
        if self.context.mode == "plain":
            return
        place = self.op(f"getelementptr i64, ptr %counters, i64 {site * abi.COUNTERS + counter}")
        old = self.op(f"load i64, ptr {place}")
        self.emit(f"store i64 {self.op(f'add i64 {old}, {amount}')}, ptr {place}")

    def _population(self, mask: str) -> str:
        self.context.declarations["llvm.ctpop.i32"] = "declare i32 @llvm.ctpop.i32(i32)"
        bits = self.op(f"call i32 @llvm.ctpop.i32(i32 {mask})")
        return self.op(f"zext i32 {bits} to i64")

    def _add_instructions(self, amount: str) -> None:
        old = self.op("load i64, ptr %instructions.place")
        self.emit(f"store i64 {self.op(f'add i64 {old}, {amount}')}, ptr %instructions.place")
