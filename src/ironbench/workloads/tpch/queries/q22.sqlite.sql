-- Sales opportunity: number and balance of customers in certain countries with a high balance and no orders, by country.
-- SQLite keeps money in whole cents and rates in whole percent, so that sums are exact.
SELECT cntrycode,
       count(*) AS numcust,
       sum(c_acctbal) / 100.0 AS totacctbal
FROM (
    SELECT substr(c_phone, 1, 2) AS cntrycode,
           c_acctbal
    FROM customer
    WHERE substr(c_phone, 1, 2) IN ({codes})
      AND c_acctbal > (
          SELECT avg(c_acctbal)
          FROM customer
          WHERE c_acctbal > 0.00
            AND substr(c_phone, 1, 2) IN ({codes}))
      AND NOT EXISTS (
          SELECT 1
          FROM orders
          WHERE o_custkey = c_custkey)) likely
GROUP BY cntrycode
ORDER BY cntrycode
