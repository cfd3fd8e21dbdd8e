-- Revenue change: how much more revenue a year would have had without certain discounts on small quantities.
-- SQLite keeps money in whole cents and rates in whole percent, so that sums are exact.
SELECT sum(l_extendedprice * l_discount) / 10000.0 AS revenue
FROM lineitem
WHERE l_shipdate >= '{since}'
  AND l_shipdate < '{before}'
  AND l_discount BETWEEN {least_percent} AND {most_percent}
  AND l_quantity < {quantity}
