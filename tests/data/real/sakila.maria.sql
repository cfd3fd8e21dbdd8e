-- Sakila-like Sample Database Schema
-- Version 1.2

SET NAMES utf8mb4;
SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0;
SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0;
SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='TRADITIONAL';

DROP SCHEMA IF EXISTS video;
CREATE SCHEMA video;
USE video;

--
-- Table structure for table `film`
--

CREATE TABLE film (
  film_id SMALLINT UNSIGNED NOT NULL AUTO_INCREMENT,
  title VARCHAR(128) NOT NULL,
  release_year YEAR DEFAULT NULL,
  rental_rate DECIMAL(4,2) NOT NULL DEFAULT 4.99,
  rating ENUM('G','PG','PG-13','R','NC-17') DEFAULT 'G',
  special_features SET('Trailers','Commentaries','Deleted Scenes') DEFAULT NULL,
  last_update TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY  (film_id),
  KEY idx_title (title)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- Use InnoDB for film_text as of 5.6.10, MyISAM prior to 5.6.10.
SET @old_default_storage_engine = @@default_storage_engine;
SET @@default_storage_engine = 'MyISAM';
/*!50610 SET @@default_storage_engine = 'InnoDB'*/;

CREATE TABLE film_text (
  film_id SMALLINT NOT NULL,
  title VARCHAR(255) NOT NULL,
  PRIMARY KEY  (film_id),
  FULLTEXT KEY idx_title (title)
) DEFAULT CHARSET=utf8mb4;

SET @@default_storage_engine = @old_default_storage_engine;

DELIMITER ;;
CREATE TRIGGER `ins_film` AFTER INSERT ON `film` FOR EACH ROW BEGIN
    INSERT INTO film_text (film_id, title)
        VALUES (new.film_id, new.title);
  END;;


CREATE TRIGGER `upd_film` AFTER UPDATE ON `film` FOR EACH ROW BEGIN
    IF (old.title != new.title)
    THEN
        UPDATE film_text
            SET title=new.title,
                film_id=new.film_id
        WHERE film_id=old.film_id;
    END IF;
  END;;

DELIMITER ;

CREATE VIEW film_list
AS
SELECT film.film_id AS FID, film.title AS title, (SELECT title FROM video.film_text t WHERE t.film_id = film.film_id) AS words
FROM video.film GROUP BY film.film_id;

DELIMITER $$

CREATE FUNCTION inventory_in_stock(p_inventory_id INT) RETURNS BOOLEAN
READS SQL DATA
BEGIN
    DECLARE v_out     INT;

    #A COMMENT WITH A ; IN IT
    SELECT COUNT(*) INTO v_out FROM film WHERE film_id = p_inventory_id;
    IF v_out > 0 THEN
      RETURN FALSE;
    ELSE
      RETURN TRUE;
    END IF;
END $$

DELIMITER ;

DELIMITER //
CREATE PROCEDURE rewards_report (
    IN min_monthly_purchases TINYINT UNSIGNED
    , OUT count_rewardees INT
)
LANGUAGE SQL
NOT DETERMINISTIC
READS SQL DATA
SQL SECURITY DEFINER
COMMENT 'Provides a customizable report on best customers'
proc: BEGIN
    IF min_monthly_purchases = 0 THEN
        SELECT 'Minimum monthly purchases parameter must be > 0';
        LEAVE proc;
    END IF;
    CREATE TEMPORARY TABLE tmpCustomer (customer_id SMALLINT UNSIGNED NOT NULL PRIMARY KEY);
    SELECT COUNT(*) FROM tmpCustomer INTO count_rewardees;
    DROP TABLE tmpCustomer;
END //

DELIMITER ;

SET AUTOCOMMIT=0;
INSERT INTO film VALUES (1,'ACADEMY DINOSAUR',2006,'0.99','PG','Deleted Scenes,Trailers','2006-02-15 05:03:42'),
(2,'ACE; GOLDFINGER',2006,'4.99','G','Trailers','2006-02-15 05:03:42');
COMMIT;
SET AUTOCOMMIT=1;

SET SQL_MODE=@OLD_SQL_MODE;
SET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS;
SET UNIQUE_CHECKS=@OLD_UNIQUE_CHECKS;
