-- Small orders: average yearly revenue from orders far below a part's average quantity.
SELECT sum(l_extendedprice) / 7.0 AS avg_yearly
FROM lineitem
JOIN part ON p_partkey = l_partkey
WHERE p_brand = '{brand}'
  AND p_container = '{container}'
  AND l_quantity < (
      SELECT 0.2 * avg(line.l_quantity)
      FROM lineitem line
      WHERE line.l_partkey = p_partkey)
