-- Pricing summary: quantities, prices, discounts and taxes of all lines shipped up to a date, by return flag and status.
-- SQLite keeps money in whole cents and rates in whole percent, so that sums are exact.
SELECT l_returnflag,
       l_linestatus,
       sum(l_quantity) AS sum_qty,
       sum(l_extendedprice) / 100.0 AS sum_base_price,
       sum(l_extendedprice * (100 - l_discount)) / 10000.0 AS sum_disc_price,
       sum(l_extendedprice * (100 - l_discount) * (100 + l_tax)) / 1000000.0 AS sum_charge,
       avg(l_quantity) AS avg_qty,
       avg(l_extendedprice) / 100 AS avg_price,
       avg(l_discount) / 100 AS avg_disc,
       count(*) AS count_order
FROM lineitem
WHERE l_shipdate <= '{until}'
GROUP BY l_returnflag, l_linestatus
ORDER BY l_returnflag, l_linestatus
