alter table usertable add primary key (ycsb_key);
