-- Local supplier volume: revenue of a year in which customer and supplier are in the same nation of a region, by nation.
SELECT n_name,
       sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM region
JOIN nation ON n_regionkey = r_regionkey
JOIN customer ON c_nationkey = n_nationkey
JOIN orders ON o_custkey = c_custkey
JOIN lineitem ON l_orderkey = o_orderkey
JOIN supplier ON s_suppkey = l_suppkey AND s_nationkey = c_nationkey
WHERE r_name = '{region}'
  AND o_orderdate >= '{since}'
  AND o_orderdate < '{before}'
GROUP BY n_name
ORDER BY revenue DESC
