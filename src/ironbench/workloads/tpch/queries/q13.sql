-- Customer distribution: number of customers by number of orders. Orders with a certain remark are not counted.
SELECT c_count,
       count(*) AS custdist
FROM (
    SELECT c_custkey,
           count(o_orderkey) AS c_count
    FROM customer
    LEFT JOIN orders ON o_custkey = c_custkey AND o_comment NOT LIKE '%{word1}%{word2}%'
    GROUP BY c_custkey) per_customer
GROUP BY c_count
ORDER BY custdist DESC, c_count DESC
