-- Revenue change: how much more revenue a year would have had without certain discounts on small quantities.
SELECT sum(l_extendedprice * l_discount) AS revenue
FROM lineitem
WHERE l_shipdate >= '{since}'
  AND l_shipdate < '{before}'
  AND l_discount BETWEEN {least} AND {most}
  AND l_quantity < {quantity}
