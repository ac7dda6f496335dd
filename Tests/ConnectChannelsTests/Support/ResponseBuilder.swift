@testable import ConnectChannels

/// Builds DNS responses, byte by byte.
struct ResponseBuilder {
  private(set) var bytes: [UInt8] = []
  private var counts: [UInt16] = [0, 0, 0, 0]
  private var offsets: [DNSName: Int] = [:]
  var compresses = true

  /// - Parameter flags: By default the flags of a response from a recursive server.
  init(id: UInt16, flags: UInt16 = 0x8180, code: DNSResponseCode = .noError) {
    self.append(id)
    self.append(flags | code.rawValue & 0xf)
    for _ in 0..<4 { self.append(UInt16(0)) }
  }

  /// The answer to a query, with its question.
  init(to query: [UInt8], flags: UInt16 = 0x8180, code: DNSResponseCode = .noError) {
    let message = DNSMessage(decoding: query)!
    self.init(id: message.id, flags: flags, code: code)
    for question in message.questions { self.question(question.name, question.type) }
  }

  private mutating func append(_ value: UInt16) {
    self.bytes.append(UInt8(value >> 8))
    self.bytes.append(UInt8(truncatingIfNeeded: value))
  }

  private mutating func append(_ value: UInt32) {
    self.append(UInt16(value >> 16))
    self.append(UInt16(truncatingIfNeeded: value))
  }

  private mutating func append(_ name: DNSName) {
    var labels = name.labels[...]
    while !labels.isEmpty {
      let rest = DNSName(labels: Array(labels))!
      if self.compresses, let offset = self.offsets[rest] {
        self.append(UInt16(0xc000 | offset))
        return
      }
      if self.bytes.count < 0x4000 { self.offsets[rest] = self.bytes.count }
      let label = labels.removeFirst()
      self.bytes.append(UInt8(label.count))
      self.bytes += label
    }
    self.bytes.append(0)
  }

  private mutating func count(_ section: Int) {
    self.counts[section] += 1
    self.bytes[4 + section * 2] = UInt8(self.counts[section] >> 8)
    self.bytes[5 + section * 2] = UInt8(truncatingIfNeeded: self.counts[section])
  }

  mutating func question(_ name: DNSName, _ type: DNSRecordType) {
    self.append(name)
    self.append(type.rawValue)
    self.append(UInt16(1))
    self.count(0)
  }

  /// - Parameter section: 1 for answers, 2 for authorities, 3 for additional records.
  mutating func record(
    _ name: DNSName,
    _ type: DNSRecordType,
    ttl: UInt32 = 60,
    section: Int = 1,
    _ content: (inout ResponseBuilder) -> Void
  ) {
    self.append(name)
    self.append(type.rawValue)
    self.append(UInt16(1))
    self.append(ttl)
    let start = self.bytes.count
    self.append(UInt16(0))
    content(&self)
    let size = self.bytes.count - start - 2
    self.bytes[start] = UInt8(size >> 8)
    self.bytes[start + 1] = UInt8(truncatingIfNeeded: size)
    self.count(section)
  }

  mutating func address(_ name: DNSName, _ text: String, ttl: UInt32 = 60, section: Int = 1) {
    let address = IPAddress(text)!
    self.record(name, address.family == .v4 ? .a : .aaaa, ttl: ttl, section: section) {
      $0.bytes += address.bytes
    }
  }

  mutating func alias(_ name: DNSName, to target: DNSName, ttl: UInt32 = 60) {
    self.record(name, .cname, ttl: ttl) { $0.append(target) }
  }

  mutating func service(
    _ name: DNSName,
    priority: UInt16 = 0,
    weight: UInt16 = 0,
    port: UInt16,
    target: DNSName,
    ttl: UInt32 = 60
  ) {
    self.record(name, .srv, ttl: ttl) {
      $0.append(priority)
      $0.append(weight)
      $0.append(port)
      $0.append(target)
    }
  }

  mutating func text(_ name: DNSName, _ strings: [String], ttl: UInt32 = 60) {
    self.record(name, .txt, ttl: ttl) { builder in
      for string in strings {
        builder.bytes.append(UInt8(string.utf8.count))
        builder.bytes += string.utf8
      }
    }
  }

  /// Bytes of a record's content.
  mutating func raw(_ bytes: [UInt8]) { self.bytes += bytes }

  mutating func authority(_ zone: DNSName, ttl: UInt32 = 900, minimum: UInt32 = 30) {
    self.record(zone, .soa, ttl: ttl, section: 2) {
      $0.append(zone)
      $0.append(zone)
      $0.bytes += [UInt8](repeating: 1, count: 16)
      $0.append(minimum)
    }
  }

  mutating func options(extendedCode: UInt8 = 0) {
    self.record(.root, .opt, ttl: UInt32(extendedCode) << 24, section: 3) { _ in }
  }
}

/// Not called `name`, as test cases have a property of this name.
func dns(_ text: String) -> DNSName { DNSName(text)! }
