select count(*) from sqlite_master where type = 'index' and name in (:indexes);
