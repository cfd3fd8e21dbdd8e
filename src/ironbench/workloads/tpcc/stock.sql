-- Line N of an order: reduces the stock by the quantity, and restocks 91 if fewer than ten would remain (TPC-C, 2.4.2.2).
update stock set s_quantity = s_quantity - :qN + case when s_quantity >= :qN + 10 then 0 else 91 end,
    s_ytd = s_ytd + :qN, s_order_cnt = s_order_cnt + 1,
    s_remote_cnt = s_remote_cnt + case when s_w_id = :w_id then 0 else 1 end
where s_w_id = :sN and s_i_id = :iN;
