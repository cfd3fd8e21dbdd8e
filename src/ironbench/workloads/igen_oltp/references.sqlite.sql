-- A trigger and not `on delete cascade`, which SQLite heeds only on connections that ask for it.
create trigger igen_order_lines_go after delete on igen_order begin
    delete from igen_order_line where customer_id = old.customer_id and order_no = old.order_no;
end;
