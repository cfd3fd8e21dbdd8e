-- Makes a small change to data that other transactions only read; runs in the server.
begin;
select brokerage_data_maintenance(:table_no, :c_id, :ca_id, :co_id, :symbol, :day, :volume);
commit;
