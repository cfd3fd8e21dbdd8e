-- Small orders: average yearly revenue from orders far below a part's average quantity.
-- SQLite keeps money in whole cents and rates in whole percent, so that sums are exact.
SELECT sum(l_extendedprice) / 700.0 AS avg_yearly
FROM lineitem
JOIN part ON p_partkey = l_partkey
WHERE p_brand = '{brand}'
  AND p_container = '{container}'
  AND 5 * l_quantity < (
      SELECT avg(line.l_quantity)
      FROM lineitem line
      WHERE line.l_partkey = p_partkey)
