"""The twelve consistency conditions of TPC-C (clause 3.3.2), and comparisons of the tables with what a trial did.

The query of a condition counts the rows that violate it. After loading, all conditions are satisfied. Transactions
preserve all of them except the eleventh. Queries only compare and add money, so that they work if money is stored as
decimals or as whole hundredths.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.workloads.base import checked, one_row
from ironbench.workloads.commit_check import Commits, commits_check

CONDITIONS = {
    1: "w_ytd = sum of d_ytd",
    2: "d_next_o_id - 1 = newest order = newest undelivered order",
    3: "numbers in new_order have no gaps",
    4: "sum of o_ol_cnt = order lines of the district",
    5: "an order is in new_order exactly if it has no carrier",
    6: "o_ol_cnt = lines of the order",
    7: "a line has a delivery date exactly if its order has a carrier",
    8: "w_ytd = payments in the warehouse",
    9: "d_ytd = payments in the district",
    10: "c_balance = delivered amounts - payments",
    11: "orders - new_order = 2100 in each district",
    12: "c_balance + c_ytd_payment = delivered amounts",
}
ONLY_AFTER_LOAD = (11,)
LOADED_ORDERS = 3_000
"""Number of orders of a district after loading. The counters in `stock` do not include these orders."""
CHECKED_WAREHOUSES = 10
"""Number of warehouses that are checked after a trial. The check takes a few seconds. If there are more warehouses,
each trial checks different ones."""
_STEP = 7_919
"""Factor by which samples move when orders are added. The factor is a prime, so that each trial checks different
warehouses."""


def violations(warehouses: range) -> dict[tuple[int, ...], str]:
    """Returns queries. A query checks the conditions that read the same large tables, whose numbers are the key. The
    query has one column for each condition: the number of rows of these warehouses that violate the condition.
    """

    def of(warehouse: str) -> str:
        return f"{warehouse} between {warehouses.start} and {warehouses.stop - 1}"

    return {
        (1,): f"""
        select count(*) from warehouse left join (
            select d_w_id, sum(d_ytd) as total from district where {of("d_w_id")} group by d_w_id
        ) districts on d_w_id = w_id
        where {of("w_id")} and (total is null or w_ytd <> total)""",
        (2,): f"""
        select count(*) from (
            select d_next_o_id - 1 as newest,
                (select max(o_id) from orders where o_w_id = d_w_id and o_d_id = d_id) as ordered,
                (select max(no_o_id) from new_order where no_w_id = d_w_id and no_d_id = d_id) as undelivered
            from district where {of("d_w_id")}
        ) numbers
        where ordered is null or ordered <> newest or undelivered <> newest""",
        (3,): f"""
        select count(*) from (
            select no_w_id, no_d_id from new_order where {of("no_w_id")} group by no_w_id, no_d_id
            having max(no_o_id) - min(no_o_id) + 1 <> count(*)
        ) gaps""",
        (4,): f"""
        select count(*) from district left join (
            select o_w_id, o_d_id, sum(o_ol_cnt) as counted from orders where {of("o_w_id")} group by o_w_id, o_d_id
        ) ordered on o_w_id = d_w_id and o_d_id = d_id left join (
            select ol_w_id, ol_d_id, count(*) as line_count from order_line where {of("ol_w_id")}
            group by ol_w_id, ol_d_id
        ) contained on ol_w_id = d_w_id and ol_d_id = d_id
        where {of("d_w_id")} and coalesce(counted, 0) <> coalesce(line_count, 0)""",
        (5,): f"""
        select (
            select count(*) from orders left join new_order on no_w_id = o_w_id and no_d_id = o_d_id and no_o_id = o_id
            where {of("o_w_id")} and (o_carrier_id is null) <> (no_o_id is not null)
        ) + (
            select count(*) from new_order left join orders on o_w_id = no_w_id and o_d_id = no_d_id and o_id = no_o_id
            where {of("no_w_id")} and o_id is null
        )""",
        (6, 7): f"""
        select sum(case when o_ol_cnt <> coalesce(line_count, 0) then 1 else 0 end),
            sum(case when o_carrier_id is null then dated else line_count - dated end)
        from orders left join (
            select ol_w_id, ol_d_id, ol_o_id, count(*) as line_count, count(ol_delivery_d) as dated
            from order_line where {of("ol_w_id")} group by ol_w_id, ol_d_id, ol_o_id
        ) contained on ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id
        where {of("o_w_id")}""",
        (8,): f"""
        select count(*) from warehouse left join (
            select h_w_id, sum(h_amount) as paid from history where {of("h_w_id")} group by h_w_id
        ) payments on h_w_id = w_id
        where {of("w_id")} and w_ytd <> coalesce(paid, 0)""",
        (9,): f"""
        select count(*) from district left join (
            select h_w_id, h_d_id, sum(h_amount) as paid from history where {of("h_w_id")} group by h_w_id, h_d_id
        ) payments on h_w_id = d_w_id and h_d_id = d_id
        where {of("d_w_id")} and d_ytd <> coalesce(paid, 0)""",
        # Loaded lines that were delivered have the amount 0, so only few lines have an amount. With `left join`,
        # planners start from these.
        (10, 12): f"""
        select sum(case when c_balance <> coalesce(delivered, 0) - coalesce(paid, 0) then 1 else 0 end),
            sum(case when c_balance + c_ytd_payment <> coalesce(delivered, 0) then 1 else 0 end)
        from customer left join (
            select o_w_id, o_d_id, o_c_id, sum(ol_amount) as delivered
            from order_line left join orders on o_w_id = ol_w_id and o_d_id = ol_d_id and o_id = ol_o_id
            where {of("ol_w_id")} and ol_delivery_d is not null and ol_amount <> 0 group by o_w_id, o_d_id, o_c_id
        ) sold on o_w_id = c_w_id and o_d_id = c_d_id and o_c_id = c_id left join (
            select h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) as paid from history where {of("h_c_w_id")}
            group by h_c_w_id, h_c_d_id, h_c_id
        ) payments on h_c_w_id = c_w_id and h_c_d_id = c_d_id and h_c_id = c_id
        where {of("c_w_id")}""",
        ONLY_AFTER_LOAD: f"""
        select count(*) from district left join (
            select o_w_id, o_d_id, count(*) as orders from orders where {of("o_w_id")} group by o_w_id, o_d_id
        ) ordered on o_w_id = d_w_id and o_d_id = d_id left join (
            select no_w_id, no_d_id, count(*) as undelivered from new_order where {of("no_w_id")}
            group by no_w_id, no_d_id
        ) waiting on no_w_id = d_w_id and no_d_id = d_id
        where {of("d_w_id")} and coalesce(orders, 0) - coalesce(undelivered, 0) <> 2100""",
    }


def counters(warehouses: int) -> dict[str, str]:
    """Returns queries that check the counters which no condition covers. The key is the name of the check. The queries
    must read all warehouses, because several warehouses supply the lines of an order."""
    return {
        "s_order_cnt, s_remote_cnt and s_ytd = lines of new orders": f"""
        select count(*) from stock left join (
            select ol_supply_w_id, ol_i_id, count(*) as line_count, sum(ol_quantity) as quantity,
                sum(case when ol_supply_w_id <> ol_w_id then 1 else 0 end) as remote
            from order_line where ol_w_id between 1 and {warehouses} and ol_o_id > {LOADED_ORDERS}
            group by ol_supply_w_id, ol_i_id
        ) sold on ol_supply_w_id = s_w_id and ol_i_id = s_i_id
        where s_order_cnt <> coalesce(line_count, 0) or s_ytd <> coalesce(quantity, 0)
            or s_remote_cnt <> coalesce(remote, 0)""",
    }


def after_load(session: Session, warehouses: int) -> tuple[Check, ...]:
    """Checks all conditions on all warehouses."""
    return _conditions(session, violations(range(1, warehouses + 1)))


def at_any_time(session: Session, warehouses: int) -> tuple[Check, ...]:
    """Checks all warehouses, but only the conditions that transactions preserve."""
    return _conditions(session, _lasting(range(1, warehouses + 1)))


@dataclass(frozen=True, slots=True)
class TpccState:
    """Numbers of rows before a trial. No transaction is in progress at this time."""

    orders: int
    """Number of orders that were ever placed. The number is computed from the next order numbers of districts, because
    orders are numbered without gaps (conditions 2 and 4)."""
    undelivered: int
    payments: int
    commits: Commits


def read_state(session: Session) -> TpccState:
    commits = Commits.read(session)
    orders, undelivered, payments = one_row(
        session,
        "select (select sum(d_next_o_id - 1) from district), (select count(*) from new_order), "
        "(select count(*) from history)",
    )
    return TpccState(orders, undelivered, payments, commits)


def check(
    session: Session, options: Mapping[str, str], before: TpccState, summary: Mapping[str, Any]
) -> tuple[Check, ...]:
    # The commits are read first. Otherwise, the other queries of this session would also be counted.
    commits = commits_check(session, before.commits, summary)
    warehouses = int(options["warehouses"])
    kept = _conditions(session, _lasting(sample(warehouses, before.orders)))
    return (*commits, *kept, *grown(before, read_state(session), summary), *_counters(session, warehouses))


def sample(warehouses: int, orders: int) -> range:
    """Returns the warehouses to check after a trial. `orders`: number of orders when the trial began."""
    first = 1 + orders * _STEP % max(1, warehouses - CHECKED_WAREHOUSES + 1)
    return range(first, min(warehouses, first + CHECKED_WAREHOUSES - 1) + 1)


def _lasting(warehouses: range) -> dict[tuple[int, ...], str]:
    return {numbers: sql for numbers, sql in violations(warehouses).items() if numbers != ONLY_AFTER_LOAD}


def _conditions(session: Session, queries: Mapping[tuple[int, ...], str]) -> tuple[Check, ...]:
    found = {
        number: count
        for numbers, sql in queries.items()
        for number, count in zip(numbers, one_row(session, sql), strict=True)
    }
    return tuple(checked(f"condition {number}: {CONDITIONS[number]}", 0, found[number]) for number in sorted(found))


def _counters(session: Session, warehouses: int) -> tuple[Check, ...]:
    if warehouses > CHECKED_WAREHOUSES:
        return ()
    return tuple(checked(name, 0, one_row(session, sql)[0]) for name, sql in counters(warehouses).items())


def grown(before: TpccState, now: TpccState, summary: Mapping[str, Any]) -> tuple[Check, ...]:
    """Compares the clients' counts with the tables. The comparison allows for interrupted transactions, which may have
    been committed."""
    unsure = int(summary.get("server_commits_uncertain", 0))
    scripts = {script["name"]: script for script in summary["scripts"]}

    def committed(name: str) -> int:
        script = scripts.get(name, {})
        return int(script.get("completed", 0)) - int(script.get("rolled_back_in_all", 0))

    orders, payments = now.orders - before.orders, now.payments - before.payments
    delivered = orders - (now.undelivered - before.undelivered)
    most = 10 * (committed("delivery") + unsure)
    return (
        _grown("orders placed = New-Orders committed", committed("new-order"), unsure, orders),
        _grown("rows of history = Payments committed", committed("payment"), unsure, payments),
        checked("orders delivered by a Delivery", f"at most {most}", delivered, 0 <= delivered <= most),
    )


def _grown(name: str, ours: int, unsure: int, actual: int) -> Check:
    expected = f"{ours} to {ours + unsure}" if unsure else ours
    return checked(name, expected, actual, ours <= actual <= ours + unsure)
