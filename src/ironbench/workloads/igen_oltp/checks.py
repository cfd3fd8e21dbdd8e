"""Consistency checks of the order-entry workload. The queries run outside the measured time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.workloads.base import checked, one_row
from ironbench.workloads.commit_check import Commits, commits_check
from ironbench.workloads.fixed_rows import FixedRows
from ironbench.workloads.igen_oltp.layout import MOST_ORDERS, layout

PLACED, ARCHIVED = "place_order", "archive_order"
"""Names of scripts that exist only with weight=light."""

SLICE = 250_000
"""Number of customers whose orders are compared with the lines of these orders. If there are more customers, each trial
checks a different range of customers."""
TOLERANCE = 0.5
"""Fraction of the expected writes that may be missing.

A statement occasionally has no effect if two clients choose the same customer at the same time. If a `--seed` is used
again on the same data, it selects the same customers, and more and more of them reach their limits. The check is meant
to find statements that never have an effect.
"""


FIXED = (
    FixedRows("igen_region", ("region_id", "length(name)")),
    FixedRows("igen_product", ("product_id", "category_id", "price_cents", "length(name)", "length(description)")),
    FixedRows("igen_customer", ("customer_id", "region_id", "length(name)", "length(email)", "length(city)")),
    FixedRows("igen_stock", ("product_id", "region_id")),
)
"""Rows that do not change. Only `spent_cents` of customers and `quantity` of stock change."""


@dataclass(frozen=True, slots=True)
class OrderCounts:
    """Numbers of orders. The orders of a customer are numbered without gaps. The sum of all customers' oldest numbers
    therefore shows how many orders were ever deleted, and the sum of their newest numbers how many were inserted.
    Nothing needs to be counted during the trial.
    """

    orders: int
    newest: int
    oldest: int
    customers: int
    fixed: Mapping[str, str]
    """Number and checksums of the rows that no transaction changes. The key is the table."""
    commits: Commits


def read_state(session: Session) -> OrderCounts:
    commits = Commits.read(session)
    orders, newest, oldest, customers = one_row(
        session,
        "select sum(held), sum(newest), sum(oldest), count(*) from (select count(*) as held, max(order_no) as newest, "
        "min(order_no) as oldest from igen_order group by customer_id) per_customer",
    )
    fixed = {rows.table: rows.read(session, 0) for rows in FIXED}
    return OrderCounts(orders, newest, oldest, customers, fixed, commits)


def check(
    session: Session, options: Mapping[str, str], before: OrderCounts, summary: Mapping[str, Any]
) -> tuple[Check, ...]:
    commits = commits_check(session, before.commits, summary)
    now = read_state(session)
    inserted, deleted = now.newest - before.newest, now.oldest - before.oldest
    return (
        _totals(session, options, summary),
        checked(
            "stock is never negative", 0, one_row(session, "select count(*) from igen_stock where quantity < 0")[0]
        ),
        checked("every customer has an order", layout(options).customers, now.customers),
        checked("inserted - deleted = difference in orders", inserted - deleted, now.orders - before.orders),
        checked("orders per customer are bounded", f"at most {MOST_ORDERS}", *_longest(session)),
        *(checked(f"{table} is unchanged", sums, now.fixed[table]) for table, sums in before.fixed.items()),
        *_writes(options, inserted, deleted, summary),
        *commits,
    )


def _totals(session: Session, options: Mapping[str, str], summary: Mapping[str, Any]) -> Check:
    customers = layout(options).customers
    # Every trial checks a different range of customers, so that repeated trials check all of them.
    first = 1 + int(summary.get("commits", 0)) % max(1, customers - SLICE)
    within = f"between {first} and {first + SLICE}"
    wrong = one_row(
        session,
        f"""
        select count(*) from igen_order o left join (
            select customer_id, order_no, count(*) as line_count, sum(quantity * price_cents) as total_cents
            from igen_order_line where customer_id {within} group by customer_id, order_no
        ) l on l.customer_id = o.customer_id and l.order_no = o.order_no
        where o.customer_id {within} and (l.total_cents is null or l.total_cents <> o.total_cents
                                          or l.line_count <> o.line_count)""",
    )[0]
    lost = one_row(
        session,
        f"""
        select count(*) from igen_order_line l where l.customer_id {within} and not exists (
            select 1 from igen_order o where o.customer_id = l.customer_id and o.order_no = l.order_no)""",
    )[0]
    return checked("orders agree with their lines", 0, wrong + lost)


def _longest(session: Session) -> tuple[int, bool]:
    most = one_row(
        session, "select max(held) from (select count(*) as held from igen_order group by customer_id) per_customer"
    )[0]
    return most, most <= MOST_ORDERS


def _writes(options: Mapping[str, str], inserted: int, deleted: int, summary: Mapping[str, Any]) -> tuple[Check, ...]:
    """Checks that the statements had the intended effect.

    With weight=heavy, every commit places exactly one order and archives one. With weight=light, an insert or delete
    correctly has no effect if its customer is at the limit (docs/workloads/igen-oltp.md). This happens to one in
    `MOST_ORDERS` inserts and to the same fraction of deletes. The number of these transactions has a binomial
    distribution. Concurrent clients that choose the same customer may cause one more.
    """
    unsure = int(summary["server_commits_uncertain"])
    if options["weight"] == "heavy":
        commits = int(summary["commits"])
        return tuple(
            checked(f"orders {name} = commits", commits, count, commits <= count <= commits + unsure)
            for name, count in (("placed", inserted), ("archived", deleted))
        )
    run = {script["name"]: int(script["completed"]) for script in summary["scripts"]}
    return tuple(
        _hits(f"statements that {name} an order", run[script], count, unsure)
        for name, script, count in (("placed", PLACED, inserted), ("archived", ARCHIVED, deleted))
    )


def _hits(name: str, run: int, hits: int, unsure: int) -> Check:
    expected = run * (1 - 1 / MOST_ORDERS)
    low = expected * (1 - TOLERANCE) - 6 * math.sqrt(run / MOST_ORDERS)
    return checked(name, f"{max(0, round(low))} to {run + unsure} of {run}", hits, low <= hits <= run + unsure)
