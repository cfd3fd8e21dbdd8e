"""Assigns sampled stacks to activities of the engine and to subsystems of the kernel."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache

from ironbench.model.profile import BLOCKED, CLIENT, CPU_QUEUE, KERNEL_MARK, WAITING_FOR_WORK, SampledStack

OTHER = "other"
"""Group of stacks in which no function belongs to a known group."""
KERNEL_PATHS: Mapping[str, str] = {
    r"(do_|__)?futex_.*": "futex",
    r"(do_)?(sys_)?(epoll|poll|select)_.*|do_sys_poll|ep_poll": "polling",
    r"(tcp|udp|inet6?|ip6?|unix|sock|skb|net|dev|napi|neigh|nf)_.*|__(sock|tcp|ip|netif|dev)_.*|(sys_|sys_socket)?"
    r"(sendto|recvfrom|sendmsg|recvmsg)|netif_.*|process_backlog": "network",
    r"(ext4|xfs|btrfs|jbd2|f2fs|overlay|ovl|fuse|nfs|zfs)_.*|__(ext4|xfs|jbd2)_.*": "file system",
    r"(blk|bio|nvme|scsi|virtblk|loop|dm|sd|mq|elv|md|raid\d*)_.*|(__)?submit_bio.*|io_schedule.*|virtio_.*": "block "
    "layer",
    r"filemap_.*|generic_(file|perform)_.*|.*pagecache.*|folio_.*|iomap_.*|__filemap_.*|balance_dirty_pages.*": "page "
    "cache",
    r"vfs_.*|ksys_.*|(do_)?fsync.*|file_.*|new_sync_.*|path_.*|filename_.*|do_(filp|sys)_open.*": "VFS",
    r"io_uring_.*|io_(issue|submit|read|write|wq)_.*|__io_uring_.*": "io_uring",
    r"(do_)?(wp|anonymous|fault|user_addr_fault|exc_page_fault|handle_mm_fault|mmap|munmap|brk|page_fault)(_.*)?|"
    r"handle_mm_fault|.*page_fault.*|(alloc|free)_(pages|pcp).*|clear_page.*|shmem_.*|unmap_.*|zap_.*": "memory "
    "management",
    r"(__)?schedule(_.*)?|(try_to_)?wake_up.*|ttwu_.*|(pick|put|set)_(prev|next)_.*|finish_task_switch.*|enqueue_.*|"
    r"dequeue_.*|update_(curr|rq|load).*|sched_.*": "scheduler",
    r".*(irq|softirq|interrupt|hrtimer|tick|timer|rcu).*": "interrupts",
    r"do_syscall_64.*|entry_SYSCALL.*|syscall_.*|x64_sys_call|__x64_sys_.*|el0_svc.*|invoke_syscall": "system call",
}
"""Subsystem of the kernel for each regular expression. The expressions match names of kernel functions from Linux 5.10
to 6.18. The innermost function that matches determines the subsystem."""


_CLONE = re.compile(r"(\.(isra|part|constprop|cold|lto_priv|llvm)(\.\d+)*)+$")
"""Suffixes of the variants of a function that a compiler creates, for example `ServerLoop.isra.0` (GCC:
gcc/cgraphclones.cc)."""


def activity_of(groups: Mapping[str, str]) -> Callable[[str], str]:
    """Returns a function that finds the activity of a stack (frames joined by semicolons). The activity is `OTHER` if
    no frame matches. Names are matched without the suffixes of a compiler's variants of a function. `groups`: as in
    `engines.base.Engine.profile_groups`."""
    names, rank = list(groups.values()), _rank(groups)

    @cache
    def activity(stack: str) -> str:
        first = min(map(rank, stack.split(";")))
        return names[first] if first < len(names) else OTHER

    return activity


def deciding_function(groups: Mapping[str, str]) -> Callable[[str], str]:
    """Returns a function that finds the outermost function that determines the activity of a stack. For a stack without
    an activity, it is the innermost function."""
    rank = _rank(groups)

    @cache
    def deciding(stack: str) -> str:
        frames = stack.split(";")
        first = min(map(rank, frames))
        frame = next(one for one in frames if rank(one) == first) if first < len(groups) else frames[-1]
        return frame.removesuffix(KERNEL_MARK)

    return deciding


def _rank(groups: Mapping[str, str]) -> Callable[[str], int]:
    """Returns a function that finds the place of the first expression that matches the name of a function. If none
    matches, it is the number of expressions."""
    patterns = [re.compile(pattern) for pattern in groups]

    @cache
    def rank(function: str) -> int:
        if function.endswith(KERNEL_MARK):
            return len(patterns)
        name = _CLONE.sub("", function)
        return next((place for place, pattern in enumerate(patterns) if pattern.fullmatch(name)), len(patterns))

    return rank


def in_transaction(stack: SampledStack, activity: Callable[[str], str]) -> bool:
    """Returns whether the time is part of a transaction.

    Two kinds of waits for an event are not part of a transaction: a thread that waits for work, and a client that waits
    for the engine's answer or for the next scheduled start. A thread that has been woken and waits for a CPU no longer
    waits for work.
    """
    return stack.reason != BLOCKED or not (stack.role == CLIENT or activity(stack.stack) == WAITING_FOR_WORK)


_KERNEL = [(re.compile(pattern), name) for pattern, name in KERNEL_PATHS.items()]
_SWITCHES = "scheduler"


@cache
def _subsystem(name: str) -> str:
    return next((group for pattern, group in _KERNEL if pattern.fullmatch(name)), "")


def kernel_path(stack: SampledStack) -> str:
    """Returns the kernel's subsystem in which the time was spent. Returns an empty text outside the kernel.

    The innermost kernel function determines the subsystem. For a wait for an event, functions of the scheduler are
    ignored, because every such stack ends there. A wait for a CPU belongs to no subsystem.
    """
    if stack.reason == CPU_QUEUE:
        return ""
    found = [
        _subsystem(name.removesuffix(KERNEL_MARK)) for name in reversed(stack.frames) if name.endswith(KERNEL_MARK)
    ]
    known = [group for group in found if group and not (stack.reason == BLOCKED and group == _SWITCHES)]
    return known[0] if known else OTHER if found else ""
