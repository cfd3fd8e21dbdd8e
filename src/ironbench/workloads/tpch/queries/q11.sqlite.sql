-- Important stock: parts whose stock in one nation is worth more than a certain fraction of that nation's total stock.
-- SQLite keeps money in whole cents and rates in whole percent, so that sums are exact.
SELECT ps_partkey,
       sum(ps_supplycost * ps_availqty) / 100.0 AS value
FROM partsupp
JOIN supplier ON s_suppkey = ps_suppkey
JOIN nation ON n_nationkey = s_nationkey
WHERE n_name = '{nation}'
GROUP BY ps_partkey
HAVING sum(ps_supplycost * ps_availqty) > (
    SELECT sum(ps_supplycost * ps_availqty) * {fraction}
    FROM partsupp
    JOIN supplier ON s_suppkey = ps_suppkey
    JOIN nation ON n_nationkey = s_nationkey
    WHERE n_name = '{nation}')
ORDER BY value DESC
