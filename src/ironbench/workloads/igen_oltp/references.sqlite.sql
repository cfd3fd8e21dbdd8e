-- A trigger is used instead of `on delete cascade`, because SQLite enforces foreign keys only on connections that
-- enable them.
create trigger igen_order_lines_go after delete on igen_order begin
    delete from igen_order_line where customer_id = old.customer_id and order_no = old.order_no;
end;
