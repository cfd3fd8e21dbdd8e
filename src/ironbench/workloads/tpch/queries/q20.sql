-- Promotion candidates: suppliers in a nation with more stock of certain parts than half of what they shipped in a year.
SELECT s_name,
       s_address
FROM supplier
JOIN nation ON n_nationkey = s_nationkey
WHERE n_name = '{nation}'
  AND s_suppkey IN (
      SELECT ps_suppkey
      FROM partsupp
      WHERE ps_partkey IN (
              SELECT p_partkey
              FROM part
              WHERE p_name LIKE '{colour}%')
        AND ps_availqty > (
              SELECT 0.5 * sum(l_quantity)
              FROM lineitem
              WHERE l_partkey = ps_partkey
                AND l_suppkey = ps_suppkey
                AND l_shipdate >= '{since}'
                AND l_shipdate < '{before}'))
ORDER BY s_name
