-- Cheapest supplier: for parts of one size and metal, the suppliers in a region with the lowest cost in that region.
SELECT s_acctbal,
       s_name,
       n_name,
       p_partkey,
       p_mfgr,
       s_address,
       s_phone,
       s_comment
FROM part
JOIN partsupp ON ps_partkey = p_partkey
JOIN supplier ON s_suppkey = ps_suppkey
JOIN nation ON n_nationkey = s_nationkey
JOIN region ON r_regionkey = n_regionkey
WHERE p_size = {size}
  AND p_type LIKE '%{metal}'
  AND r_name = '{region}'
  AND ps_supplycost = (
      SELECT min(offer.ps_supplycost)
      FROM partsupp offer
      JOIN supplier other ON other.s_suppkey = offer.ps_suppkey
      JOIN nation place ON place.n_nationkey = other.s_nationkey
      JOIN region around ON around.r_regionkey = place.n_regionkey
      WHERE offer.ps_partkey = p_partkey
        AND around.r_name = '{region}')
ORDER BY s_acctbal DESC, n_name, s_name, p_partkey
LIMIT 100
