//! What a message broker said of a message that was published to it. It must not know what is spoken with a broker.

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrokerAnswer {
    /// It is kept there: a stream's acknowledgment, a publisher confirm, the id of an entry.
    Taken,
    /// Why not, in the broker's words; once the broker or the connection is mended, it may be.
    NotTaken(String),
    /// The message itself is at fault.
    Unfit(String),
}

impl BrokerAnswer {
    /// Why it was not taken.
    pub fn error(&self) -> Option<&str> {
        match self {
            BrokerAnswer::Taken => None,
            BrokerAnswer::NotTaken(why) | BrokerAnswer::Unfit(why) => Some(why),
        }
    }
}
