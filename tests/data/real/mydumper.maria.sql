/*!40101 SET NAMES binary*/;
/*!40014 SET FOREIGN_KEY_CHECKS=0*/;
/*!40101 SET SQL_MODE='NO_AUTO_VALUE_ON_ZERO,STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION'*/;
/*!40103 SET TIME_ZONE='+00:00' */;
CREATE TABLE `orders` (
  `id` int(11) NOT NULL AUTO_INCREMENT,
  `customer` int(11) DEFAULT NULL,
  `note` text CHARACTER SET utf8mb4,
  `raw` varbinary(100),
  `amount` decimal(10,2) GENERATED ALWAYS AS (`id` * 1.5) VIRTUAL,
  PRIMARY KEY (`id`),
  KEY `customer` (`customer`),
  CONSTRAINT `orders_customer` FOREIGN KEY (`customer`) REFERENCES `customers` (`id`) ON DELETE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
CREATE TABLE `customers` (
  `id` int(11) NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
INSERT INTO `orders` (`id`,`customer`,`note`,`raw`) VALUES(1,1,"double \"quoted\"; it's",_binary "\0\\\"ÿ")
,(2,1,"line\nbreak",0xDEADBEEF)
,(3,NULL,NULL,x'00FF')
;
INSERT INTO `customers` VALUES
(1)
,(2)
;
