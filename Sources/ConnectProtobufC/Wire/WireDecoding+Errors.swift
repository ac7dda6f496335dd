internal import CProtobufC
internal import Connect

/// The errors of a decode. They are made in separate functions, as building their texts inline would take stack at
/// every level.
extension WireDecoding {
  @inline(never)
  func tooDeep(in table: MessageTable) -> ConnectError {
    .undecodable(
      "\(table.name): more than \(self.maximumDepth) nested messages",
      code: .resourceExhausted
    )
  }

  @inline(never)
  func tooMuchMemory(for table: MessageTable) -> ConnectError {
    .undecodable(
      "\(table.name): takes more than \(self.arena.limit) bytes of memory",
      code: .resourceExhausted
    )
  }

  @inline(never)
  func lacksRequired(besides counted: FieldSet, in table: MessageTable) -> ConnectError {
    let missing = table.fields.indices.first { table.fields[$0].isCounted && !counted.contains($0) }
    let name = missing.map { table.name(of: table.fields[$0]) } ?? table.name
    return .undecodable("\(name): required, but not set")
  }

  @inline(never)
  func wrongWireType(_ tag: UInt32, of field: FieldSchema, in table: MessageTable) -> ConnectError {
    self.failure("wrong wire type \(tag & 7)", of: field, in: table)
  }

  @inline(never)
  func failure(_ problem: String, of field: FieldSchema, in table: MessageTable) -> ConnectError {
    .undecodable("\(table.name(of: field)): \(problem)")
  }
}
