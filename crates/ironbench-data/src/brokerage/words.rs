//! Names of companies and towns, and words of news. All names are invented. Any similarity to a company or place is
//! coincidental.

/// First words of the names of companies. A name consists of one word from this list and one from each of the next two.
/// There are 10,240 names.
pub const FIRM_BEGINS: [&str; 32] = [
    "Amber", "Anchor", "Aspen", "Beacon", "Birch", "Blue", "Bright", "Clear", "Coral", "Crescent", "Delta", "Eagle",
    "Ember", "Falcon", "Fern", "Flint", "Golden", "Granite", "Harbour", "Heron", "Iron", "Juniper", "Lake", "Maple",
    "Meadow", "North", "Otter", "Pine", "Quartz", "River", "Silver", "Willow",
];
pub const FIRM_MIDDLES: [&str; 32] = [
    "Arc", "Bay", "Bell", "Bridge", "Brook", "Castle", "Cliff", "Cross", "Dale", "Field", "Ford", "Forge", "Gate",
    "Glen", "Grove", "Haven", "Hill", "Key", "Line", "Loom", "Mill", "Moor", "Peak", "Point", "Port", "Ridge", "Sail",
    "Spring", "Stone", "Vale", "Wave", "Wheel",
];
pub const FIRM_ENDS: [&str; 10] =
    ["Company", "Corporation", "Group", "Holdings", "Industries", "Labs", "Partners", "Systems", "Trading", "Works"];

pub const SECTORS: [&str; 12] = [
    "Agriculture",
    "Chemistry",
    "Construction",
    "Education",
    "Energy",
    "Finance",
    "Health",
    "Media",
    "Metals",
    "Software",
    "Trade",
    "Transport",
];
/// Fields of industries. Nine fields in each of eleven or twelve sectors give the 102 industries.
pub const FIELDS: [&str; 9] =
    ["Equipment", "Services", "Supplies", "Research", "Logistics", "Retail", "Components", "Consulting", "Leasing"];

pub const TOWN_BEGINS: [&str; 40] = [
    "Alder", "Ash", "Barrow", "Bay", "Birk", "Black", "Brack", "Bram", "Carr", "Clay", "Cold", "Copper", "Crow", "Dun",
    "East", "Elm", "Fair", "Fox", "Glass", "Green", "Hart", "Hazel", "High", "Holm", "King", "Lang", "Long", "Marsh",
    "Mill", "New", "Oak", "Old", "Rain", "Red", "Salt", "Sand", "Stone", "Thorn", "West", "White",
];
pub const TOWN_ENDS: [&str; 20] = [
    "beck", "borough", "bridge", "brook", "burn", "bury", "combe", "dale", "den", "field", "ford", "ham", "haven",
    "ley", "mere", "port", "stead", "ton", "well", "wick",
];
pub const COUNTRIES: [&str; 2] = ["USA", "Canada"];

pub const RATINGS: [&str; 10] = ["AAA", "AA+", "AA", "AA-", "A+", "A", "A-", "BBB", "BB", "B"];

/// Words of news. A news item is a sequence of these words.
pub const NEWS: [&str; 64] = [
    "about",
    "after",
    "agrees",
    "analysts",
    "announces",
    "another",
    "bank",
    "begins",
    "board",
    "bonds",
    "brings",
    "builds",
    "buyers",
    "capital",
    "cautious",
    "chain",
    "change",
    "closes",
    "costs",
    "customers",
    "deal",
    "demand",
    "doubles",
    "earnings",
    "enters",
    "expects",
    "factory",
    "fall",
    "first",
    "forecast",
    "from",
    "growth",
    "hires",
    "in",
    "interest",
    "investors",
    "its",
    "launches",
    "less",
    "loss",
    "market",
    "more",
    "new",
    "of",
    "opens",
    "orders",
    "partner",
    "plans",
    "price",
    "product",
    "profit",
    "quarter",
    "raises",
    "region",
    "report",
    "rise",
    "sales",
    "sells",
    "share",
    "strong",
    "supply",
    "talks",
    "than",
    "year",
];
pub const PAPERS: [&str; 6] =
    ["Harbour Courier", "Market Lantern", "Morning Ledger", "The Broad Sheet", "Trading Post", "Weekly Balance"];
