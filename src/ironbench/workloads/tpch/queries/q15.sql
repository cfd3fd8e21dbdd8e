-- Top supplier: the supplier with the highest revenue of a quarter. Uses a common table expression instead of a view.
WITH contribution AS (
    SELECT l_suppkey AS supplier_no,
           sum(l_extendedprice * (1 - l_discount)) AS total_revenue
    FROM lineitem
    WHERE l_shipdate >= '{since}'
      AND l_shipdate < '{before}'
    GROUP BY l_suppkey)
SELECT s_suppkey,
       s_name,
       s_address,
       s_phone,
       total_revenue
FROM supplier
JOIN contribution ON supplier_no = s_suppkey
WHERE total_revenue = (SELECT max(total_revenue) FROM contribution)
ORDER BY s_suppkey
