-- Volume shipping: revenue of goods shipped between two nations, by direction and year.
-- SQLite keeps money in whole cents and rates in whole percent, so that sums are exact, and dates as text.
SELECT supp_nation,
       cust_nation,
       l_year,
       sum(volume) / 10000.0 AS revenue
FROM (
    SELECT seller.n_name AS supp_nation,
           buyer.n_name AS cust_nation,
           CAST(substr(l_shipdate, 1, 4) AS INTEGER) AS l_year,
           l_extendedprice * (100 - l_discount) AS volume
    FROM supplier
    JOIN lineitem ON l_suppkey = s_suppkey
    JOIN orders ON o_orderkey = l_orderkey
    JOIN customer ON c_custkey = o_custkey
    JOIN nation seller ON seller.n_nationkey = s_nationkey
    JOIN nation buyer ON buyer.n_nationkey = c_nationkey
    WHERE (seller.n_name = '{nation1}' AND buyer.n_name = '{nation2}'
        OR seller.n_name = '{nation2}' AND buyer.n_name = '{nation1}')
      AND l_shipdate BETWEEN '1995-01-01' AND '1996-12-31') shipping
GROUP BY supp_nation, cust_nation, l_year
ORDER BY supp_nation, cust_nation, l_year
