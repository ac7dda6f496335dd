/// What a response says about one question, aliases followed.
enum DNSReply: Hashable {
  /// The records of the name, or of the name that its aliases lead to.
  case records([DNSRecord.Data], timeToLive: UInt32)
  /// The name is an alias, and the response has no records of the target: ask for the target.
  case alias(DNSName, timeToLive: UInt32)
  /// The name exists without records of this type (NODATA). The time in seconds is nil where the server gave
  /// none.
  case noRecords(timeToLive: UInt32?)
  /// The name does not exist (NXDOMAIN).
  case noSuchName(timeToLive: UInt32?)
  /// Aliases form a loop, or too long a chain.
  case tooManyAliases
  /// The server has failed. The text says how.
  case failure(String)

  /// How many aliases a response may have in a row.
  static let maximumAliases = 16

  init(_ message: DNSMessage, to name: DNSName, type: DNSRecordType) {
    guard message.responseCode == .noError || message.responseCode == .noSuchName else {
      self = .failure("answered \(message.responseCode)")
      return
    }
    var current = name
    var timeToLive = UInt32(Int32.max)
    var aliases = 0
    while true {
      var found: [DNSRecord.Data] = []
      var target: DNSName?
      for record in message.answers where record.name == current {
        if record.type == type, record.data != .other {
          found.append(record.data)
          timeToLive = min(timeToLive, record.timeToLive)
        } else if case .alias(let name) = record.data, target == nil {
          target = name
          timeToLive = min(timeToLive, record.timeToLive)
        }
      }
      if !found.isEmpty {
        self = .records(found, timeToLive: timeToLive)
        return
      }
      guard let target else { break }
      aliases += 1
      guard aliases <= Self.maximumAliases else {
        self = .tooManyAliases
        return
      }
      current = target
    }
    self.init(absenceIn: message, of: current, askedFor: name, aliasTimeToLive: timeToLive)
  }

  /// The response has no record that was asked for.
  private init(absenceIn message: DNSMessage, of name: DNSName, askedFor: DNSName, aliasTimeToLive: UInt32) {
    let negativeTimeToLive = Self.negativeTimeToLive(message)
    if message.responseCode == .noSuchName {
      self = .noSuchName(timeToLive: negativeTimeToLive)
    } else if name != askedFor, negativeTimeToLive == nil {
      self = .alias(name, timeToLive: aliasTimeToLive)
    } else if negativeTimeToLive == nil, !message.isAuthoritative, !message.isRecursionAvailable {
      // A referral to other servers: a stub resolver needs a server that follows it.
      self = .failure("does not do recursion")
    } else {
      self = .noRecords(timeToLive: negativeTimeToLive)
    }
  }

  /// The lower of the SOA record's TTL and its field MINIMUM (RFC 2308, section 5).
  private static func negativeTimeToLive(_ message: DNSMessage) -> UInt32? {
    for record in message.authorities {
      if case .authority(let minimum) = record.data { return min(record.timeToLive, minimum) }
    }
    return nil
  }
}
