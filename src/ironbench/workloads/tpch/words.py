"""The lists that parameters are drawn from (TPC-H specification 2.17.3, 4.2.2.13 and 4.2.3)."""

from __future__ import annotations

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
_BY_REGION = {
    "AFRICA": "ALGERIA ETHIOPIA KENYA MOROCCO MOZAMBIQUE",
    "AMERICA": "ARGENTINA BRAZIL CANADA PERU UNITED_STATES",
    "ASIA": "CHINA INDIA INDONESIA JAPAN VIETNAM",
    "EUROPE": "FRANCE GERMANY ROMANIA RUSSIA UNITED_KINGDOM",
    "MIDDLE EAST": "EGYPT IRAN IRAQ JORDAN SAUDI_ARABIA",
}
REGION_OF = {nation.replace("_", " "): region for region, nations in _BY_REGION.items() for nation in nations.split()}
NATIONS = tuple(sorted(REGION_OF))
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
KINDS = ("ECONOMY", "LARGE", "MEDIUM", "PROMO", "SMALL", "STANDARD")
FINISHES = ("ANODIZED", "BRUSHED", "BURNISHED", "PLATED", "POLISHED")
METALS = ("BRASS", "COPPER", "NICKEL", "STEEL", "TIN")
WRAPPINGS = ("JUMBO", "LG", "MED", "SM", "WRAP")
CONTAINERS = ("BAG", "BOX", "CAN", "CASE", "DRUM", "JAR", "PACK", "PKG")
REMARKS = (("express", "pending", "special", "unusual"), ("accounts", "deposits", "packages", "requests"))
_COLOURS = """
almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished chartreuse chiffon
chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab firebrick floral forest frosted gainsboro
ghost goldenrod green grey honeydew hot indian ivory khaki lace lavender lawn lemon light lime linen magenta maroon
medium metallic midnight mint misty moccasin navajo navy olive orange orchid pale papaya peach peru pink plum powder
puff purple red rose rosy royal saddle salmon sandy seashell sienna sky slate smoke snow spring steel tan thistle
tomato turquoise violet wheat white yellow
"""
COLOURS = tuple(_COLOURS.split())
