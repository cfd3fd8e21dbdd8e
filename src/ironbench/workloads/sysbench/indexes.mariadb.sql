select count(*) from information_schema.statistics where table_schema = database() and index_name in (:indexes);
