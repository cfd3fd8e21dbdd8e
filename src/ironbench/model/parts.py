"""The parts that the time of a transaction is divided into, in the order in which they are shown."""

from __future__ import annotations

CPU = "CPU"
RUN_QUEUE = "run queue"
DATA_READ = "data read"
DATA_WRITE = "data write"
LOG_FLUSH = "log flush"
TEMP = "temp"
LOCKS = "locks"
INTERNAL_LOCKS = "internal locks"
CLIENT = "client"
OTHER = "other"

PARTS = (CPU, RUN_QUEUE, DATA_READ, DATA_WRITE, LOG_FLUSH, TEMP, LOCKS, INTERNAL_LOCKS, CLIENT, OTHER)
MEANING = {
    CPU: "the engine computing",
    RUN_QUEUE: "ready to compute, waiting for a core",
    DATA_READ: "reading pages of tables and indexes",
    DATA_WRITE: "writing pages out, to make room or to extend a table",
    LOG_FLUSH: "writing the log and waiting until it is safe",
    TEMP: "reading and writing temporary files",
    LOCKS: "waiting for another transaction's lock on a row, a table or the like",
    INTERNAL_LOCKS: "waiting for the engine's own short locks on its memory",
    CLIENT: "the client, the way to it, and its think time",
    OTHER: "known waits of no other part, and what nothing accounts for",
}
