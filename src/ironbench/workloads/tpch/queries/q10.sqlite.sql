-- Returned items: the customers whose returned items from a quarter's orders cost the most revenue.
-- SQLite keeps money in whole cents and rates in whole percent, so that sums are exact.
SELECT c_custkey,
       c_name,
       sum(l_extendedprice * (100 - l_discount)) / 10000.0 AS revenue,
       c_acctbal / 100.0 AS c_acctbal,
       n_name,
       c_address,
       c_phone,
       c_comment
FROM customer
JOIN orders ON o_custkey = c_custkey
JOIN lineitem ON l_orderkey = o_orderkey
JOIN nation ON n_nationkey = c_nationkey
WHERE o_orderdate >= '{since}'
  AND o_orderdate < '{before}'
  AND l_returnflag = 'R'
GROUP BY c_custkey, c_name, customer.c_acctbal, c_phone, n_name, c_address, c_comment
ORDER BY revenue DESC
LIMIT 20
