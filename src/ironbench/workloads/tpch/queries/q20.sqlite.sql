-- Promotion candidates: suppliers in a nation with more stock of certain parts than half of what they shipped in a year.
-- SQLite keeps money in whole cents and rates in whole percent, so that sums are exact.
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
        AND 2 * ps_availqty > (
              SELECT sum(l_quantity)
              FROM lineitem
              WHERE l_partkey = ps_partkey
                AND l_suppkey = ps_suppkey
                AND l_shipdate >= '{since}'
                AND l_shipdate < '{before}'))
ORDER BY s_name
