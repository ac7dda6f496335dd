internal import CProtobufC
internal import Synchronization

/// The tables of message types, each with the tables of all types that it reaches.
final class MessageTables: Sendable {
  /// The tables of protoc-c's structs, whose descriptors are constants.
  static let ofStructs = MessageTables()

  private struct State {
    let memory = DescriptorMemory()
    nonisolated(unsafe) var tables: [MessageDescriptorPointer: MessageTable] = [:]
  }

  private let state = Mutex(State())

  /// The table of a type, made at the first request. It lives as long as this object.
  func table(of descriptor: MessageDescriptorPointer) -> MessageTable {
    self.state.withLock { Self.table(of: descriptor, in: &$0) }
  }

  private static func table(of root: MessageDescriptorPointer, in state: inout State) -> MessageTable {
    if let table = state.tables[root] { return table }
    var new: [(descriptor: MessageDescriptorPointer, table: MessageTable)] = []
    var open = [root]
    while let descriptor = open.popLast() {
      if state.tables[descriptor] != nil { continue }
      // Initialised below, when the tables of the fields' types have been allocated.
      let table = MessageTable(state.memory.place(for: MessageTable.Record.self))
      state.tables[descriptor] = table
      new.append((descriptor, table))
      for field in descriptor.fieldPointers where field.pointee.kind == .message {
        if let inner = field.pointee.messageDescriptor { open.append(inner) }
      }
    }
    let withRequired = self.withRequired(new.map(\.descriptor), in: state)
    for (descriptor, table) in new {
      let fields = descriptor.fieldPointers.map { field in
        let inner = field.pointee.kind == .message ? field.pointee.messageDescriptor : nil
        return FieldSchema.Record(field, table: inner.flatMap { state.tables[$0] })
      }
      table.initialize(
        to: MessageTable.Record(
          descriptor: descriptor,
          size: descriptor.pointee.sizeof_message,
          emptyMessage: UnsafeRawPointer(state.memory.arena.newMessage(descriptor)),
          fields: FieldList(
            start: state.memory.array(of: fields) ?? state.memory.place(for: FieldSchema.Record.self),
            count: fields.count
          ),
          countedCount: fields.count(where: \.isCounted),
          containsRequired: withRequired.contains(descriptor),
          schema: nil
        )
      )
    }
    return new[0].table
  }

  /// The `new` types that contain a required field, at any depth.
  private static func withRequired(
    _ new: [MessageDescriptorPointer],
    in state: State
  ) -> Set<MessageDescriptorPointer> {
    let isNew = Set(new)
    var owners = Owners<MessageDescriptorPointer>()
    var found: [MessageDescriptorPointer] = []
    for descriptor in new {
      for field in descriptor.fieldPointers {
        if field.pointee.label == PROTOBUF_C_LABEL_REQUIRED { found.append(descriptor) }
        guard field.pointee.kind == .message, let inner = field.pointee.messageDescriptor else { continue }
        if isNew.contains(inner) {
          owners.add(descriptor, of: inner)
        } else if state.tables[inner]?.containsRequired == true {
          found.append(descriptor)
        }
      }
    }
    return owners.reached(from: found)
  }
}
