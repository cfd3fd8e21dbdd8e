-- Suppliers who kept orders waiting: suppliers in a nation who were the only late supplier of a finished order.
SELECT s_name,
       count(*) AS numwait
FROM supplier
JOIN lineitem late ON late.l_suppkey = s_suppkey
JOIN orders ON o_orderkey = late.l_orderkey
JOIN nation ON n_nationkey = s_nationkey
WHERE n_name = '{nation}'
  AND o_orderstatus = 'F'
  AND late.l_receiptdate > late.l_commitdate
  AND EXISTS (
      SELECT 1
      FROM lineitem beside
      WHERE beside.l_orderkey = late.l_orderkey
        AND beside.l_suppkey <> late.l_suppkey)
  AND NOT EXISTS (
      SELECT 1
      FROM lineitem beside
      WHERE beside.l_orderkey = late.l_orderkey
        AND beside.l_suppkey <> late.l_suppkey
        AND beside.l_receiptdate > beside.l_commitdate)
GROUP BY s_name
ORDER BY numwait DESC, s_name
LIMIT 100
