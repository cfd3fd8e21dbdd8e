//! Words for names, places and descriptions. The words are plain ASCII without tabs and backslashes, so that COPY needs
//! no escapes. All combinations are invented. Any similarity to a person or product is coincidental.

pub const FIRST_NAMES: &[&str] = &[
    "Ada", "Akira", "Amina", "Andrei", "Aroha", "Bea", "Carlos", "Chidi", "Dana", "Elif", "Emma", "Farid", "Grace",
    "Hana", "Igor", "Ines", "Jonas", "Kofi", "Lars", "Leila", "Lin", "Luca", "Maria", "Mateo", "Mei", "Nadia", "Noah",
    "Olga", "Pedro", "Priya", "Rosa", "Samir", "Sofia", "Tama", "Tomas", "Uma", "Vera", "Wei", "Yusuf", "Zoe",
];

pub const LAST_NAMES: &[&str] = &[
    "Abe", "Adeyemi", "Alvarez", "Andersen", "Baker", "Bauer", "Bianchi", "Carter", "Chen", "Costa", "Diallo",
    "Dubois", "Fischer", "Garcia", "Haddad", "Hansen", "Ito", "Ivanova", "Jansen", "Kaur", "Khan", "Kim", "Kowalski",
    "Larsen", "Lopez", "Mbeki", "Moreau", "Nakamura", "Ngata", "Novak", "Okafor", "Park", "Patel", "Perez", "Rossi",
    "Santos", "Silva", "Smith", "Tanaka", "Weber", "Wang", "Yilmaz", "Zhang",
];

pub const STREETS: &[&str] = &[
    "Acacia Avenue",
    "Bridge Street",
    "Canal Road",
    "Castle Lane",
    "Cedar Street",
    "Church Road",
    "Garden Row",
    "Harbour Street",
    "Hill Road",
    "Lake View",
    "Market Square",
    "Mill Lane",
    "Oak Street",
    "Orchard Way",
    "Park Avenue",
    "Queen Street",
    "River Walk",
    "School Road",
    "Station Road",
    "Victoria Street",
];

/// Cities by region, in the order of the regions.
pub const CITIES: [&[&str]; 6] = [
    &["Bangkok", "Beijing", "Delhi", "Dubai", "Jakarta", "Manila", "Mumbai", "Osaka", "Seoul", "Shanghai", "Tokyo"],
    &["Athens", "Berlin", "Dublin", "Lisbon", "London", "Madrid", "Oslo", "Paris", "Prague", "Rome", "Vienna"],
    &["Atlanta", "Boston", "Chicago", "Dallas", "Denver", "Mexico City", "Miami", "Montreal", "Seattle", "Toronto"],
    &["Bogota", "Brasilia", "Buenos Aires", "Caracas", "La Paz", "Lima", "Montevideo", "Quito", "Recife", "Santiago"],
    &["Abuja", "Accra", "Algiers", "Cairo", "Cape Town", "Dakar", "Kampala", "Lagos", "Nairobi", "Rabat", "Tunis"],
    &["Adelaide", "Apia", "Auckland", "Brisbane", "Melbourne", "Nadi", "Noumea", "Perth", "Sydney", "Wellington"],
];

pub const QUALITIES: &[&str] = &[
    "adjustable",
    "bright",
    "classic",
    "compact",
    "durable",
    "elegant",
    "folding",
    "handmade",
    "heavy",
    "insulated",
    "large",
    "light",
    "modern",
    "portable",
    "quiet",
    "robust",
    "simple",
    "slim",
    "smart",
    "soft",
    "solid",
    "strong",
    "waterproof",
    "wireless",
];

pub const MATERIALS: &[&str] = &[
    "aluminium",
    "bamboo",
    "canvas",
    "ceramic",
    "copper",
    "cotton",
    "felt",
    "glass",
    "leather",
    "linen",
    "oak",
    "paper",
    "pine",
    "silk",
    "steel",
    "stone",
    "wool",
];

pub const THINGS: &[&str] = &[
    "backpack", "basket", "blanket", "bottle", "bowl", "brush", "camera", "chair", "clock", "desk", "drill", "fan",
    "hammer", "jacket", "kettle", "keyboard", "knife", "lamp", "mirror", "monitor", "mug", "notebook", "pan", "pillow",
    "radio", "router", "scarf", "shelf", "speaker", "stool", "table", "tent", "toaster", "torch", "tray", "umbrella",
];
