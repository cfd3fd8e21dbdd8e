-- The oldest month goes to the archive and its partition away; a partition for a new month is attached.
call batch_age();
