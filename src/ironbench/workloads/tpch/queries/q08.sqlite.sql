-- National market share: a nation's share of its region's revenue from parts of one type, in two years.
-- SQLite keeps money in whole cents and rates in whole percent, so that sums are exact, and dates as text.
SELECT o_year,
       sum(CASE WHEN nation = '{nation}' THEN volume ELSE 0 END) * 1.0 / sum(volume) AS mkt_share
FROM (
    SELECT CAST(substr(o_orderdate, 1, 4) AS INTEGER) AS o_year,
           l_extendedprice * (100 - l_discount) AS volume,
           seller.n_name AS nation
    FROM part
    JOIN lineitem ON l_partkey = p_partkey
    JOIN supplier ON s_suppkey = l_suppkey
    JOIN orders ON o_orderkey = l_orderkey
    JOIN customer ON c_custkey = o_custkey
    JOIN nation buyer ON buyer.n_nationkey = c_nationkey
    JOIN region ON r_regionkey = buyer.n_regionkey
    JOIN nation seller ON seller.n_nationkey = s_nationkey
    WHERE r_name = '{region}'
      AND o_orderdate BETWEEN '1995-01-01' AND '1996-12-31'
      AND p_type = '{type}') sales
GROUP BY o_year
ORDER BY o_year
