-- Shipping priority: orders of one market segment that had not been shipped on a date, with the highest revenue first.
-- SQLite keeps money in whole cents and rates in whole percent, so that sums are exact.
SELECT l_orderkey,
       sum(l_extendedprice * (100 - l_discount)) / 10000.0 AS revenue,
       o_orderdate,
       o_shippriority
FROM customer
JOIN orders ON o_custkey = c_custkey
JOIN lineitem ON l_orderkey = o_orderkey
WHERE c_mktsegment = '{segment}'
  AND o_orderdate < '{day}'
  AND l_shipdate > '{day}'
GROUP BY l_orderkey, o_orderdate, o_shippriority
ORDER BY revenue DESC, o_orderdate
LIMIT 10
