-- Order priority check: number of orders of a quarter with at least one late line, by priority.
SELECT o_orderpriority,
       count(*) AS order_count
FROM orders
WHERE o_orderdate >= '{since}'
  AND o_orderdate < '{before}'
  AND EXISTS (
      SELECT 1
      FROM lineitem
      WHERE l_orderkey = o_orderkey
        AND l_commitdate < l_receiptdate)
GROUP BY o_orderpriority
ORDER BY o_orderpriority
