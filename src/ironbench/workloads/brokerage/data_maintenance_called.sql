-- A small change of what is otherwise only read, in the server.
begin;
select brokerage_data_maintenance(:table_no, :c_id, :ca_id, :co_id, :symbol, :day, :volume);
commit;
